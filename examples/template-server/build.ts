// SPDX-License-Identifier: Apache-2.0
// A template whose server runs already when a sandbox is made of it.
import { Sandbox, Template, defaultBuildLogger, waitForURL } from 'e2b'

const NAME = 'example-server'
const template = Template({ fileContextPath: import.meta.dirname })
  .fromTemplate('base')
  .copy('app', '/srv/app', { user: 'root' })
  .setWorkdir('/srv/app')
  .setEnvs({ GREETING: 'Hello' })
  // The build starts the server, waits until it is ready, and keeps its memory: sandboxes begin from there.
  .setStartCmd('node server.mjs', waitForURL('http://127.0.0.1:8080/health'))

await Template.build(template, NAME, { onBuildLogs: defaultBuildLogger() })

const box = await Sandbox.create(NAME)
try {
  // No waiting here: what takes long was done while the template was built.
  const answer = await box.commands.run('curl -s http://127.0.0.1:8080/')
  console.log(answer.stdout)
} finally {
  await box.kill()
}
