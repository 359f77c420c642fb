// SPDX-License-Identifier: Apache-2.0

const SAFE = /^[A-Za-z0-9_@%+=:,./-]+$/

/** A word that a shell takes as it is. */
export function shellQuote(word: string): string {
  return SAFE.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`
}
