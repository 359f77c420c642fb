// SPDX-License-Identifier: Apache-2.0
// Network rules, identity tokens and lifecycle of a sandbox, as callers write them.

/** Every address there is. */
export const ALL_TRAFFIC = '0.0.0.0/0'

export type SandboxNetworkTransform = {
  /** Headers that the egress puts on matching requests. */
  headers?: Record<string, string>
}

export type SandboxNetworkTransformContext = {
  iam: {
    /** Placeholder of each registered identity token. */
    tokens: Record<string, string>
  }
}

export type SandboxNetworkTransformResolver = (ctx: SandboxNetworkTransformContext) => SandboxNetworkTransform

export type SandboxNetworkRule = {
  transform?: SandboxNetworkTransform | SandboxNetworkTransformResolver
}

/** Rules by host name, `*.example.com` for all below one. */
export type SandboxNetworkRules = Record<string, SandboxNetworkRule[]> | Map<string, SandboxNetworkRule[]>

export type SandboxNetworkRuleInfo = {
  transform?: SandboxNetworkTransform
}

export type SandboxNetworkSelectorContext = {
  allTraffic: string
  rules: Map<string, SandboxNetworkRule[]>
}

/** Addresses, ranges and host names, or a function that gives them. */
export type SandboxNetworkSelector = string[] | ((ctx: SandboxNetworkSelectorContext) => string[])

export type SandboxEgressProxyTls = {
  enabled: boolean
  /** Name that is checked, the proxy's host when left out. */
  serverName?: string
  /** Certificates in PEM that replace the server's own trust. */
  caCert?: string
}

/** A SOCKS5 proxy that outgoing TCP goes through. */
export type SandboxEgressProxyOpts = {
  address: string
  username?: string
  password?: string
  tls?: SandboxEgressProxyTls
}

export type SandboxEgressProxyInfo = {
  address: string
  username?: string
  tls?: Omit<SandboxEgressProxyTls, 'caCert'>
}

/** What a sandbox may reach. */
export type Egress = {
  allowOut?: SandboxNetworkSelector
  denyOut?: SandboxNetworkSelector
  rules?: SandboxNetworkRules
  egressProxy?: SandboxEgressProxyOpts
  /** IPv4 addresses that may be asked for names when `allowOut` holds names; `[]`: none. */
  dnsServers?: string[]
}

export type SandboxNetworkOpts = Egress & {
  /** false: the sandbox's ports want `trafficAccessToken`. */
  allowPublicTraffic?: boolean
  /** Host header that services in the sandbox see; `${PORT}` stands for the port. */
  maskRequestHost?: string
  /** Ports in the sandbox that speak TLS. */
  httpsPorts?: number[]
}

export type SandboxNetworkInfo = {
  allowOut?: string[]
  denyOut?: string[]
  rules?: Record<string, SandboxNetworkRuleInfo[]>
  egressProxy?: SandboxEgressProxyInfo
  allowPublicTraffic?: boolean
  maskRequestHost?: string
  httpsPorts?: number[]
  dnsServers?: string[]
}

export type SandboxNetworkUpdate = Egress & {
  allowInternetAccess?: boolean
}

export type SandboxIamTokenType = 'JWT-SVID' | (string & {})

/** An identity token that the server signs for requests of the sandbox. */
export interface SandboxIamToken {
  audience: string
  tokenType: SandboxIamTokenType
}

export interface SandboxIamOpts {
  tokens?: Record<string, SandboxIamToken>
}

export type SandboxOnTimeout = 'pause' | 'kill' | { action: 'pause'; keepMemory?: boolean } | { action: 'kill' }

export type SandboxLifecycle = {
  /** What happens when the sandbox's time is over, `kill` when left out. */
  onTimeout: SandboxOnTimeout
  /** Traffic wakes a paused sandbox. */
  autoResume?: boolean
}
