// SPDX-License-Identifier: Apache-2.0
// Signatures of links to files, which work without a token until they expire.

import { toBase64 } from '../env.js'

export interface SignatureOpts {
  path: string
  operation: 'read' | 'write'
  user: string | undefined
  /** How long the link works, for ever when left out. */
  expirationInSeconds?: number
  envdAccessToken?: string
}

/** Signature of a link to a file, and the second when it stops working. */
export async function getSignature(opts: SignatureOpts): Promise<{ signature: string; expiration: number | null }> {
  const { path, operation, user = '', expirationInSeconds, envdAccessToken } = opts
  if (!envdAccessToken) throw new Error('a signature needs the access token of a secured sandbox; there is none')
  const expiration = expirationInSeconds == null ? null : Math.floor(Date.now() / 1000) + expirationInSeconds
  const parts = [path, operation, user, envdAccessToken]
  if (expiration !== null) parts.push(String(expiration))
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(parts.join(':')))
  return { signature: `v1_${toBase64(new Uint8Array(digest)).replace(/=+$/, '')}`, expiration }
}
