// SPDX-License-Identifier: Apache-2.0
// Secrets: values that the egress puts into requests and that no sandbox sees. Their calls are loaded with the first
// one (secret_calls.ts).

import { ClientFactory, ConnectionConfig, type ConnectionOpts } from './config.js'
import { InvalidArgumentError } from './errors.js'
import { Paginator } from './paginator.js'
import type { SandboxIamToken } from './sandbox/network.js'

/** A secret, without its value. */
export interface SecretInfo {
  secretId: string
  name: string
  version: number
  metadata: Record<string, string>
  createdAt: Date
  updatedAt: Date
}

export interface SecretCreateOpts extends ConnectionOpts {
  metadata?: Record<string, string>
}

export interface SecretUpdateOpts extends ConnectionOpts {
  /** Left out: kept. `{}`: emptied. */
  metadata?: Record<string, string>
}

export type SecretGetInfoOpts = ConnectionOpts
export type SecretExistsOpts = ConnectionOpts
export type SecretDestroyOpts = ConnectionOpts

export interface SecretListOpts extends Omit<ConnectionOpts, 'signal'> {
  limit?: number
  nextToken?: string
}

const load = (): Promise<typeof import('./secret_calls.js')> => import('./secret_calls.js')

const NAME = /^[A-Za-z0-9_-]{1,128}$/

function checkedName(name: string): string {
  if (NAME.test(name)) return name
  throw new InvalidArgumentError(`secret name ${JSON.stringify(name)}: give 1 to 128 of A-Z, a-z, 0-9, '_' and '-'`)
}

/** Secrets, page by page. */
export class SecretPaginator extends Paginator<SecretInfo> {
  constructor(opts?: SecretListOpts) {
    super(opts, opts?.limit, opts?.nextToken)
  }

  async nextItems(opts?: ConnectionOpts): Promise<SecretInfo[]> {
    this.needNext()
    const query = { limit: this.limit, nextToken: this.nextToken }
    return this.took(await (await load()).listSecrets(query, ConnectionConfig.mergeOpts(this.opts, opts)))
  }
}

/** Secrets of the team. */
export class Secret extends ClientFactory {
  static async create(name: string, value: string, opts?: SecretCreateOpts): Promise<SecretInfo> {
    const apiOpts = this.resolveOpts(opts)
    const body = { name: checkedName(name), value, metadata: apiOpts?.metadata }
    return (await load()).createSecret(body, apiOpts)
  }

  /** Gives a secret another value. */
  static async update(secret: string, value: string, opts?: SecretUpdateOpts): Promise<SecretInfo> {
    const apiOpts = this.resolveOpts(opts)
    return (await load()).updateSecret(secret, { value, metadata: apiOpts?.metadata }, apiOpts)
  }

  static async getInfo(secret: string, opts?: SecretGetInfoOpts): Promise<SecretInfo> {
    return (await load()).getSecret(secret, this.resolveOpts(opts))
  }

  static list(opts?: SecretListOpts): SecretPaginator {
    return new SecretPaginator(this.resolveOpts(opts))
  }

  static async exists(secret: string, opts?: SecretExistsOpts): Promise<boolean> {
    return (await load()).foundSecret('GET', secret, this.resolveOpts(opts))
  }

  /** Deletes a secret; false when there is none. */
  static async destroy(secret: string, opts?: SecretDestroyOpts): Promise<boolean> {
    return (await load()).foundSecret('DELETE', secret, this.resolveOpts(opts))
  }

  /** What stands for a secret's value in header rules. Makes no request. */
  static fill(secret: string): string {
    return `\${e2b.secrets.${checkedName(secret)}}`
  }

  /** An identity token for `iam.tokens`. Makes no request. */
  static iamToken(token: SandboxIamToken): SandboxIamToken {
    return token
  }
}
