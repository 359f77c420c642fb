// SPDX-License-Identifier: Apache-2.0
// Network rules, identity tokens and lifecycle of a sandbox, turned into what the API takes. Loaded with the first call
// that has some.

import { InvalidArgumentError } from '../errors.js'
import {
  ALL_TRAFFIC,
  type Egress,
  type SandboxIamOpts,
  type SandboxIamToken,
  type SandboxLifecycle,
  type SandboxNetworkOpts,
  type SandboxNetworkRule,
  type SandboxNetworkSelector,
  type SandboxNetworkUpdate,
} from './network.js'

const BAD_TOKEN_NAME = /[{}\p{Cc}]/u

/** Body of `iam`; undefined when no token is asked for. */
function iamBody(iam: SandboxIamOpts | undefined): SandboxIamOpts | undefined {
  const tokens: Record<string, SandboxIamToken> = {}
  for (const [name, token] of Object.entries(iam?.tokens ?? {})) {
    if (!token) continue
    if (typeof token.audience !== 'string' || typeof token.tokenType !== 'string') {
      throw new InvalidArgumentError(`iam token '${name}' needs the strings audience and tokenType`)
    }
    tokens[tokenName(name)] = { audience: token.audience, tokenType: token.tokenType }
  }
  return Object.keys(tokens).length ? { tokens } : undefined
}

function tokenName(name: string): string {
  if (name && !BAD_TOKEN_NAME.test(name)) return name
  throw new InvalidArgumentError(
    `iam token name ${JSON.stringify(name)}: not empty, without braces and control characters`,
  )
}

/** Names of tokens that a transform may ask for. `known` undefined: any, the server checks. */
function placeholders(known: string[] | undefined): Record<string, string> {
  return new Proxy<Record<string, string>>(Object.create(null) as Record<string, string>, {
    get(_, name) {
      if (typeof name !== 'string') return undefined
      if (known && !known.includes(name)) {
        const have = known.length ? `there are: ${known.join(', ')}` : 'none is: pass iam.tokens at create'
        throw new InvalidArgumentError(`iam token '${name}' is not registered; ${have}`)
      }
      return `\${e2b.identity.tokens.${tokenName(name)}}`
    },
    has: (_, name) => !known || known.includes(String(name)),
    ownKeys: () => known ?? [],
    getOwnPropertyDescriptor: (_, name) =>
      known?.includes(String(name)) ? { enumerable: true, configurable: true } : undefined,
  })
}

function rulesBody(rules: Map<string, SandboxNetworkRule[]>, known: string[] | undefined): Record<string, object[]> {
  const context = { iam: { tokens: placeholders(known) } }
  const body: Record<string, object[]> = {}
  for (const [host, list] of rules) {
    body[host] = list.map(({ transform }) => {
      if (transform == null) return {}
      const made: unknown = typeof transform === 'function' ? transform(context) : transform
      if (typeof made === 'object' && made !== null && !('then' in made) && !Array.isArray(made))
        return { transform: made }
      throw new InvalidArgumentError(
        `the transform of '${host}' must give an object at once, not ${typeof made} or a promise`,
      )
    })
  }
  return body
}

function egressBody(network: Egress, known: string[] | undefined): Record<string, unknown> {
  const rules = network.rules instanceof Map ? network.rules : new Map(Object.entries(network.rules ?? {}))
  const chosen = (selector?: SandboxNetworkSelector): string[] | undefined =>
    typeof selector === 'function' ? selector({ allTraffic: ALL_TRAFFIC, rules }) : selector
  const { egressProxy, dnsServers } = network
  if (egressProxy != null && typeof egressProxy.address !== 'string') {
    throw new InvalidArgumentError("network.egressProxy needs an address such as 'proxy.example.com:1080'")
  }
  return {
    allowOut: chosen(network.allowOut),
    denyOut: chosen(network.denyOut),
    egressProxy: egressProxy ?? undefined,
    rules: network.rules === undefined ? undefined : rulesBody(rules, known),
    dnsServers,
  }
}

/** Body of `network` at create. */
function networkBody(
  network: SandboxNetworkOpts | undefined,
  iam: SandboxIamOpts | undefined,
): Record<string, unknown> | undefined {
  if (!network) return undefined
  const { allowPublicTraffic, maskRequestHost, httpsPorts } = network
  return { ...egressBody(network, Object.keys(iam?.tokens ?? {})), allowPublicTraffic, maskRequestHost, httpsPorts }
}

/** Body of a change of the network. */
export function networkUpdateBody(network: SandboxNetworkUpdate): Record<string, unknown> {
  return { ...egressBody(network, undefined), allow_internet_access: network.allowInternetAccess }
}

/** Lifecycle fields of a create. */
function lifecycleBody(lifecycle: SandboxLifecycle | undefined): Record<string, unknown> {
  const onTimeout = lifecycle?.onTimeout
  const autoResume = lifecycle?.autoResume
  const action = typeof onTimeout === 'object' ? onTimeout.action : onTimeout
  if (action !== undefined && action !== 'pause' && action !== 'kill') {
    throw new InvalidArgumentError(`lifecycle.onTimeout is ${JSON.stringify(action)}; give 'pause' or 'kill'`)
  }
  const keepMemory =
    typeof onTimeout === 'object' && 'keepMemory' in onTimeout ? (onTimeout.keepMemory ?? true) : undefined
  if (keepMemory !== undefined && action !== 'pause') {
    throw new InvalidArgumentError("lifecycle.onTimeout.keepMemory goes with action 'pause' only")
  }
  if (autoResume && action !== 'pause')
    throw new InvalidArgumentError("lifecycle.autoResume goes with onTimeout 'pause' only")
  if (autoResume && keepMemory === false) {
    throw new InvalidArgumentError(
      'lifecycle.autoResume wants keepMemory: traffic cannot wake what has to start anew',
    )
  }
  return {
    autoPause: action === undefined ? undefined : action === 'pause',
    autoPauseMemory: keepMemory,
    autoResume: autoResume === undefined ? undefined : { enabled: autoResume },
  }
}

/** What `network`, `iam` and `lifecycle` add to the body of a create. */
export function createFields(opts: {
  network?: SandboxNetworkOpts
  iam?: SandboxIamOpts
  lifecycle?: SandboxLifecycle
}): Record<string, unknown> {
  const iam = iamBody(opts.iam)
  return { network: networkBody(opts.network, iam), iam, ...lifecycleBody(opts.lifecycle) }
}
