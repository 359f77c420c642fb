// SPDX-License-Identifier: Apache-2.0
// A web application in a sandbox, and a link at which it is seen from outside.
import { Sandbox } from 'cloche'

const PORT = 8000
const APP = `
import http from 'node:http'

let visits = 0
http.createServer((request, response) => {
  response.setHeader('Content-Type', 'text/html; charset=utf-8')
  response.end(\`<h1>Hello from a box</h1><p>Visit \${++visits} of \${request.url}</p>\`)
}).listen(${PORT})
`

const box = await Sandbox.create({ timeoutMs: 10 * 60_000 })
await box.files.write('app.mjs', APP)
const server = await box.commands.run('node app.mjs', { background: true, timeoutMs: 0 })
await box.commands.run(`curl -s --retry 60 --retry-delay 1 --retry-connrefused http://127.0.0.1:${PORT}/ready`)
await server.disconnect() // it goes on without us

// Host names of boxes have no scheme: a server on a laptop speaks http, one with a domain https.
const scheme = process.env.E2B_API_URL?.startsWith('http:') ? 'http' : 'https'
console.log(`open ${scheme}://${box.getHost(PORT)}/`)
console.log('it is there for ten minutes')
