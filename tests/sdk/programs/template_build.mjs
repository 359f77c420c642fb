// SPDX-License-Identifier: Apache-2.0
// A template of one's own, as a user of the stock SDK writes it.
import { Sandbox, Template, waitForFile } from '@e2b/code-interpreter'

const name = `program-${process.pid}-${Math.random().toString(36).slice(2, 8)}`
const template = Template()
  .fromTemplate('base')
  .copy('payload.txt', '/opt/app/payload.txt')
  .setEnvs({ APP_MODE: 'test' })
  .setWorkdir('/opt/app')
  .runCmd('wc -c < payload.txt > size.txt')
  .setStartCmd('touch /tmp/up && sleep 3600', waitForFile('/tmp/up'))

const messages = []
const build = await Template.build(template, name, { onBuildLogs: (entry) => messages.push(entry.message) })
console.log(
  build.name === name,
  build.tags.join(),
  messages.some((text) => text.includes('Template is ready')),
)
const sandbox = await Sandbox.create(name, { timeoutMs: 60_000 })
try {
  const result = await sandbox.commands.run('cat size.txt; echo $APP_MODE; pwd; pgrep -c sleep')
  console.log(JSON.stringify(result.stdout))
} finally {
  await sandbox.kill()
}
console.log(await Template.exists(name), await Sandbox.deleteSnapshot(build.templateId))
