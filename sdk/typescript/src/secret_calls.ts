// SPDX-License-Identifier: Apache-2.0
// The calls behind Secret, loaded with the first of them.

import type { ConnectionOpts } from './config.js'
import { detailed, SecretError, SecretNotFoundError } from './errors.js'
import { type ApiAnswer, type ApiRequest, askApi } from './net/api.js'
import type { Page } from './paginator.js'
import type { SecretInfo } from './secret.js'

type RawSecret = {
  secretID: string
  name: string
  currentVersion: number
  metadata?: Record<string, string>
  createdAt: string
  updatedAt: string
}

type Metadata = Record<string, string> | undefined

function ask<T>(opts: ConnectionOpts | undefined, request: ApiRequest, ...allowed: number[]): Promise<ApiAnswer<T>> {
  return askApi(opts, request, SecretError, allowed)
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

export async function createSecret(
  body: { name: string; value: string; metadata: Metadata },
  opts?: ConnectionOpts,
): Promise<SecretInfo> {
  return convert((await ask<RawSecret>(opts, { method: 'POST', path: '/secrets', body })).data!)
}

export async function updateSecret(
  secret: string,
  body: { value: string; metadata: Metadata },
  opts?: ConnectionOpts,
): Promise<SecretInfo> {
  return infoOf(await ask(opts, { method: 'POST', path: pathOf(secret), body }, 404), secret)
}

export async function getSecret(secret: string, opts?: ConnectionOpts): Promise<SecretInfo> {
  return infoOf(await ask(opts, { method: 'GET', path: pathOf(secret) }, 404), secret)
}

/** Whether a GET or DELETE of a secret found one. */
export async function foundSecret(method: 'GET' | 'DELETE', secret: string, opts?: ConnectionOpts): Promise<boolean> {
  return (await ask(opts, { method, path: pathOf(secret) }, 404)).status !== 404
}

/** A page of secrets. */
export async function listSecrets(query: ApiRequest['query'], opts?: ConnectionOpts): Promise<Page<SecretInfo>> {
  const { data, headers } = await ask<RawSecret[]>(opts, { method: 'GET', path: '/secrets', query })
  return { items: (data ?? []).map(convert), headers }
}
