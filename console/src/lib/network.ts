// SPDX-License-Identifier: Apache-2.0
export interface NetEntry {
  timestamp: string
  type: string
  name?: string
  address?: string
  addresses?: string[]
  port?: number
  protocol?: string
  verdict?: string
  reason?: string
  rule?: string
  method?: string
  path?: string
  status?: string | number
  bytesIn?: number
  bytesOut?: number
}

const REASONS: Record<string, string> = {
  list: 'by the sandbox’s own lists',
  range: 'an address no sandbox reaches',
  limit: 'too many connections at once',
}

/** What an entry says, in one line. */
export function netLine(e: NetEntry): string {
  if (e.type === 'name') return `${e.name} → ${e.addresses?.join(', ') || e.status}`
  if (e.type === 'lost') return 'more happened than is kept'
  const where = `${e.name ? `${e.name} (${e.address})` : e.address}:${e.port}`
  if (e.type === 'request') return `${e.method} ${where}${e.path} → ${e.status}`
  const why = e.reason ? `, ${REASONS[e.reason] ?? e.reason}` : ''
  return `${e.protocol} ${where}${why}`
}
