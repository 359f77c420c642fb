// SPDX-License-Identifier: Apache-2.0
// Signatures of links to files, which work without a token until they expire.

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
  return (await import('./links.js')).sign(opts)
}
