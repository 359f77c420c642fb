// SPDX-License-Identifier: Apache-2.0
// gone.mjs ID TOKEN - what the stock SDK says of a sandbox that is gone, as JSON: class and text of the errors of a
// file, a command and a connect.

import { Sandbox } from 'e2b'

const [sandboxId, envdAccessToken] = process.argv.slice(2)
const box = new Sandbox({ sandboxId, envdAccessToken, envdVersion: '0.6.13' })

async function failure(call) {
  try {
    await call()
  } catch (error) {
    return { name: error.constructor.name, message: error.message }
  }
  return { name: '', message: '' }
}

console.log(
  JSON.stringify({
    file: await failure(() => box.files.read('/etc/hostname')),
    command: await failure(() => box.commands.run('true')),
    connect: await failure(() => Sandbox.connect(sandboxId)),
  }),
)
