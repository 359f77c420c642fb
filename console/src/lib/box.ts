// SPDX-License-Identifier: Apache-2.0
// The way into a sandbox: the project's own client (sdk/typescript), led to the page's own origin. Routing headers name
// the sandbox, its access token opens it.
import { Sandbox } from '@sdk/sandbox/sandbox'
import { session } from '../app/session'
import type { SandboxDetail } from './types'

export type Box = Sandbox

export function openBox(d: SandboxDetail): Box {
  return new Sandbox({
    sandboxId: d.sandboxID,
    envdVersion: d.envdVersion,
    envdAccessToken: d.envdAccessToken,
    apiKey: session.value?.key,
    apiUrl: location.origin,
    sandboxUrl: location.origin,
    fetch: (input, init) => {
      // Stock clients leave the token out where they manage contexts, and the client here does as they do.
      const headers = new Headers(init?.headers)
      if (d.envdAccessToken && headers.has('E2b-Sandbox-Id')) headers.set('X-Access-Token', d.envdAccessToken)
      return fetch(input, { ...init, headers, credentials: 'omit', cache: 'no-store' })
    },
  })
}
