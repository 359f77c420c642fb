// SPDX-License-Identifier: Apache-2.0
// Parameters are ids and names of tabs. One with a slash or dots alone would be another path of the API, or of a box.
const ID = /^(?!\.+$)[\w.-]+$/

export type Params = Record<string, string>

/** "/sandboxes/:id/:tab?" against a path; null: another page. */
export function match(pattern: string, path: string): Params | null {
  const want = pattern.split('/').filter(Boolean)
  const have = path.split('/').filter(Boolean)
  const out: Params = {}
  if (have.length > want.length) return null
  for (let i = 0; i < want.length; i++) {
    const part = want[i]!
    const value = have[i]
    if (part.startsWith(':')) {
      const optional = part.endsWith('?')
      if (value === undefined && !optional) return null
      if (value !== undefined) {
        if (!ID.test(value)) return null
        out[part.slice(1, optional ? -1 : undefined)] = value
      }
    } else if (part !== value) return null
  }
  return out
}
