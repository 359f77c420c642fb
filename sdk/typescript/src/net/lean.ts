// SPDX-License-Identifier: Apache-2.0
// Node's own HTTP client in the place of fetch, for the requests that are sent most: fetch of Node costs a cell several
// times what the request itself does. Used where it is sure to make no other difference: in Node, with the fetch that
// was there from the start. Elsewhere, and with a fetch of the caller's, requests go by fetch.

type Lean = typeof import('./node_http.js').lean

const native = globalThis.fetch
const versions = (globalThis as { process?: { versions?: Record<string, string> } }).process?.versions
const isNode = Boolean(versions?.['node'] && !versions['bun'] && !versions['deno'])
let lean: Lean | undefined

/** The fetch to send a small request with: a lean one where that is possible. */
export function leanFetch(config: { fetch?: typeof fetch }): typeof fetch {
  if (config.fetch) return config.fetch
  return isNode && globalThis.fetch === native ? ((lean ?? loading) as unknown as typeof fetch) : globalThis.fetch
}

/** The first requests, until the client is there. */
const loading: Lean = async (url, init) => {
  lean = (await import('./node_http.js')).lean
  return lean(url, init)
}
