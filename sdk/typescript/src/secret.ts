// SPDX-License-Identifier: Apache-2.0
// Secrets: values that the egress puts into requests and that no sandbox sees.

import { ClientFactory, ConnectionConfig, type ConnectionOpts } from './config.js'
import { detailed, InvalidArgumentError, SecretError, SecretNotFoundError } from './errors.js'
import { type ApiAnswer, apiError, type ApiRequest, callApi, needKey } from './net/api.js'
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

type RawSecret = {
  secretID: string
  name: string
  currentVersion: number
  metadata?: Record<string, string>
  createdAt: string
  updatedAt: string
}

const NAME = /^[A-Za-z0-9_-]{1,128}$/

async function ask<T>(
  opts: ConnectionOpts | undefined,
  request: ApiRequest,
  allowed?: number,
): Promise<ApiAnswer<T>> {
  const config = new ConnectionConfig(opts)
  needKey(config)
  const answer = await callApi<T>(config, request, opts)
  if (answer.problem && answer.status !== allowed) throw apiError(answer, SecretError)
  return answer
}

function pathOf(secret: string): string {
  return `/secrets/${encodeURIComponent(secret)}`
}

function infoOf(answer: ApiAnswer<RawSecret>, secret: string): SecretInfo {
  if (answer.status === 404)
    throw detailed(new SecretNotFoundError(`Secret ${secret} not found`), { statusCode: 404 })
  return convert(answer.data!)
}

function convert(raw: RawSecret): SecretInfo {
  return {
    secretId: raw.secretID,
    name: raw.name,
    version: raw.currentVersion,
    metadata: raw.metadata ?? {},
    createdAt: new Date(raw.createdAt),
    updatedAt: new Date(raw.updatedAt),
  }
}

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
    const merged = ConnectionConfig.mergeOpts(this.opts, opts)
    const answer = await ask<RawSecret[]>(merged, { method: 'GET', path: '/secrets', query })
    this.updatePagination(answer)
    return (answer.data ?? []).map(convert)
  }
}

/** Secrets of the team. */
export class Secret extends ClientFactory {
  static async create(name: string, value: string, opts?: SecretCreateOpts): Promise<SecretInfo> {
    const apiOpts = this.resolveOpts(opts)
    const body = { name: checkedName(name), value, metadata: apiOpts?.metadata }
    return convert((await ask<RawSecret>(apiOpts, { method: 'POST', path: '/secrets', body })).data!)
  }

  /** Gives a secret another value. */
  static async update(secret: string, value: string, opts?: SecretUpdateOpts): Promise<SecretInfo> {
    const apiOpts = this.resolveOpts(opts)
    const body = { value, metadata: apiOpts?.metadata }
    return infoOf(await ask(apiOpts, { method: 'POST', path: pathOf(secret), body }, 404), secret)
  }

  static async getInfo(secret: string, opts?: SecretGetInfoOpts): Promise<SecretInfo> {
    return infoOf(await ask(this.resolveOpts(opts), { method: 'GET', path: pathOf(secret) }, 404), secret)
  }

  static list(opts?: SecretListOpts): SecretPaginator {
    return new SecretPaginator(this.resolveOpts(opts))
  }

  static async exists(secret: string, opts?: SecretExistsOpts): Promise<boolean> {
    return (await ask(this.resolveOpts(opts), { method: 'GET', path: pathOf(secret) }, 404)).status !== 404
  }

  /** Deletes a secret; false when there is none. */
  static async destroy(secret: string, opts?: SecretDestroyOpts): Promise<boolean> {
    return (await ask(this.resolveOpts(opts), { method: 'DELETE', path: pathOf(secret) }, 404)).status !== 404
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
