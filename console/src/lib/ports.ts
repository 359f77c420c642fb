// SPDX-License-Identifier: Apache-2.0
// Listening sockets out of /proc/net/tcp and tcp6, where 0A is LISTEN.

export interface Listener {
  port: number
  all: boolean // on all addresses, not on loopback alone
}

const OWN = new Set([49983, 49999]) // of the agent

export function listeners(text: string): Listener[] {
  const by = new Map<number, Listener>()
  for (const line of text.split('\n')) {
    const f = line.trim().split(/\s+/)
    const m = /^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$/.exec(f[1] ?? '')
    if (!m || f[3] !== '0A') continue
    const port = parseInt(m[2]!, 16)
    if (OWN.has(port)) continue
    const all = /^0+$/.test(m[1]!)
    by.set(port, { port, all: all || by.get(port)?.all === true })
  }
  return [...by.values()].sort((a, b) => a.port - b.port)
}
