// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert'
import { Sandbox, Template } from 'e2b'

const name = `program-${process.env.UNIQUE}`
const template = Template().fromTemplate('base').setEnvs({ MODE: 'test' }).runCmd('echo built > /home/user/made')
const log = []
const info = await Template.build(template, name, { cpuCount: 1, memoryMB: 512, onBuildLogs: (line) => log.push(line) })
assert(info.templateId)
assert(log.length)
assert(await Template.exists(name))
const sandbox = await Sandbox.create(name)
assert.equal(await sandbox.files.read('/home/user/made'), 'built\n')
assert.equal((await sandbox.commands.run('echo $MODE')).stdout, 'test\n')
await sandbox.kill()
console.log('done')
process.exit(0)
