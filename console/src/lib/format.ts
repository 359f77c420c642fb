// SPDX-License-Identifier: Apache-2.0
// Numbers and times as people read them.

export function bytes(n: number): string {
  if (!Number.isFinite(n)) return '–'
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let i = 0
  let v = n
  while (v >= 1000 && i < units.length - 1) {
    v /= 1024
    i++
  }
  return `${i === 0 || v >= 100 ? Math.round(v) : v.toFixed(1)} ${units[i]}`
}

/** 93 s is "1m 33s", 5000 s is "1h 23m". */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '–'
  const s = Math.max(0, Math.floor(ms / 1000))
  if (s < 60) return `${s}s`
  const m = Math.floor(s / 60)
  if (m < 60) return m < 10 ? `${m}m ${s % 60}s` : `${m}m`
  const h = Math.floor(m / 60)
  if (h < 48) return h < 10 ? `${h}h ${m % 60}m` : `${h}h`
  return `${Math.floor(h / 24)}d`
}

export function age(iso: string | undefined, now = Date.now()): string {
  const t = Date.parse(iso ?? '')
  return Number.isNaN(t) ? '–' : duration(now - t)
}

export function clock(iso: string): string {
  const d = new Date(iso)
  if (Number.isNaN(d.getTime())) return iso
  const two = (n: number) => String(n).padStart(2, '0')
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`
}

export function dateTime(iso: string | undefined): string {
  const d = new Date(iso ?? '')
  if (Number.isNaN(d.getTime())) return '–'
  const two = (n: number) => String(n).padStart(2, '0')
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(d.toISOString())}`
}

export function plural(n: number, one: string, many = one + 's'): string {
  return `${n.toLocaleString('en')} ${n === 1 ? one : many}`
}

export function percent(v: number): string {
  return `${v >= 10 ? Math.round(v) : v.toFixed(1)}%`
}

/** "KEY=value" lines; says which line is none. */
export function readVariables(text: string): { values: Record<string, string>; error?: string } {
  const values: Record<string, string> = {}
  for (const line of text.split('\n')) {
    if (!line.trim() || line.trim().startsWith('#')) continue
    const eq = line.indexOf('=')
    const name = line.slice(0, eq).trim()
    if (eq < 1 || !name) return { values, error: `“${line.trim().slice(0, 40)}” is not NAME=value` }
    values[name] = line.slice(eq + 1)
  }
  return { values }
}

/** Words between spaces, commas and line ends. */
export function readList(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean)
}
