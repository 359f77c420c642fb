// SPDX-License-Identifier: Apache-2.0
// A server that takes a while until it is of use: it computes a table first.
import http from 'node:http'

const roots = new Map()
for (let n = 0; n < 1_000_000; n++) roots.set(n, Math.sqrt(n))

http
  .createServer((request, response) => {
    if (request.url === '/health') return response.end('ok')
    return response.end(`${process.env.GREETING}: ${roots.size} roots are known, that of 144 is ${roots.get(144)}`)
  })
  .listen(8080)
