// SPDX-License-Identifier: Apache-2.0
// Links to files and their signatures, loaded with the first one.

import { toBase64 } from '../env.js'
import { InvalidArgumentError } from '../errors.js'
import type { SignatureOpts } from './signature.js'

export async function sign(opts: SignatureOpts): Promise<{ signature: string; expiration: number | null }> {
  const { path, operation, user = '', expirationInSeconds, envdAccessToken } = opts
  if (!envdAccessToken) throw new Error('a signature needs the access token of a secured sandbox; there is none')
  const expiration = expirationInSeconds == null ? null : Math.floor(Date.now() / 1000) + expirationInSeconds
  const parts = [path, operation, user, envdAccessToken]
  if (expiration !== null) parts.push(String(expiration))
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(parts.join(':')))
  return { signature: `v1_${toBase64(new Uint8Array(digest)).replace(/=+$/, '')}`, expiration }
}

/** A link to a file, signed where the sandbox has a token. */
export async function fileUrl(base: string, opts: SignatureOpts): Promise<string> {
  const { user, path, expirationInSeconds, envdAccessToken } = opts
  const url = new URL('/files', base)
  if (user) url.searchParams.set('username', user)
  if (path) url.searchParams.set('path', path)
  if (!envdAccessToken) {
    if (expirationInSeconds === undefined) return url.toString()
    throw new InvalidArgumentError('Signature expiration can be used only when sandbox is created as secured.')
  }
  const signed = await sign(opts)
  url.searchParams.set('signature', signed.signature)
  if (signed.expiration) url.searchParams.set('signature_expiration', String(signed.expiration))
  return url.toString()
}
