// SPDX-License-Identifier: Apache-2.0
// The server's own metrics, as Prometheus would read them.

export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/

export function readMetrics(text: string): Sample[] {
  const out: Sample[] = []
  for (const line of text.split('\n')) {
    const m = line.startsWith('#') ? null : LINE.exec(line)
    if (!m) continue
    const labels: Record<string, string> = {}
    for (const l of (m[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[l[1]!] = l[2]!
    out.push({ name: m[1]!, labels, value: Number(m[3]) })
  }
  return out
}

export function sum(all: Sample[], name: string, where: Record<string, string> = {}): number {
  return all
    .filter((s) => s.name === name && Object.entries(where).every(([k, v]) => s.labels[k] === v))
    .reduce((n, s) => n + s.value, 0)
}

/** A quantile out of the buckets of a histogram, as histogram_quantile does; NaN without samples. */
export function quantile(all: Sample[], name: string, q: number, where: Record<string, string> = {}): number {
  const by = new Map<number, number>()
  for (const s of all)
    if (s.name === `${name}_bucket` && Object.entries(where).every(([k, v]) => s.labels[k] === v)) {
      const le = s.labels['le'] === '+Inf' ? Infinity : Number(s.labels['le'])
      by.set(le, (by.get(le) ?? 0) + s.value)
    }
  const rows = [...by].sort((a, b) => a[0] - b[0])
  const total = rows[rows.length - 1]?.[1] ?? 0
  if (!total) return NaN
  let below = 0
  let from = 0
  for (const [le, count] of rows) {
    if (count >= q * total) {
      if (le === Infinity) return from
      return from + ((q * total - below) / Math.max(count - below, 1)) * (le - from)
    }
    below = count
    from = le
  }
  return from
}
