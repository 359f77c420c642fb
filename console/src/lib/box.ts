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
    fetch: (input, init) => fetch(input, { ...init, credentials: 'omit', cache: 'no-store' }),
  })
}
