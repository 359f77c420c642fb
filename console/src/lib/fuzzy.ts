// SPDX-License-Identifier: Apache-2.0
/** How well a text fits what was typed; 0: not at all. Letters in order count, more so at the beginnings of words. */
export function fit(query: string, text: string): number {
  const q = query.toLowerCase().replace(/\s+/g, '')
  const t = text.toLowerCase()
  if (!q) return 1
  let score = 0
  let at = 0
  for (const c of q) {
    const i = t.indexOf(c, at)
    if (i < 0) return 0
    score += i === 0 || /[^a-z0-9]/.test(t[i - 1]!) ? 8 : i === at ? 4 : 1
    at = i + 1
  }
  return score + (t.includes(query.toLowerCase().trim()) ? 20 : 0) - t.length / 100
}
