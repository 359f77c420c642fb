// SPDX-License-Identifier: Apache-2.0
// From extracted chart data to numbers on a drawing. Everything a box sends is checked here: what is no chart is null.

export interface Series {
  label: string
  points: { x: number; y: number; name: string }[]
}

export interface Bars {
  groups: string[]
  labels: string[]
  value: (label: string, group: string) => number | undefined
}

export interface BoxRow {
  label: string
  min: number
  q1: number
  median: number
  q3: number
  max: number
  outliers: number[]
}

export type Drawing = { title: string; xLabel: string; yLabel: string } & (
  | { kind: 'line' | 'scatter'; series: Series[]; names: string[] | null; time: boolean }
  | { kind: 'bar'; bars: Bars; sideways: boolean }
  | { kind: 'pie'; slices: { label: string; share: number }[] }
  | { kind: 'box'; rows: BoxRow[] }
)

type Raw = Record<string, unknown>

const isRaw = (v: unknown): v is Raw => typeof v === 'object' && v !== null && !Array.isArray(v)
const text = (v: unknown) => (typeof v === 'string' ? v : '')
const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : [])
const number = (v: unknown): number | null => {
  const n = typeof v === 'string' && v.trim() !== '' ? Number(v) : v
  return typeof n === 'number' && Number.isFinite(n) ? n : null
}

const MOST_POINTS = 20_000
const labelled = (c: Raw, name: 'x' | 'y') => {
  const unit = text(c[`${name}_unit`])
  return text(c[`${name}_label`]) + (unit ? ` (${unit})` : '')
}

const DAY = /^\d{4}-\d\d-\d\d/

/** Points whose x is a name (or a time) get its place on the axis. */
function places(rows: Raw[]): { at: (x: unknown) => number | null; names: string[] | null; time: boolean } {
  const xs = rows.flatMap((e) => list(e['points']).map((p) => list(p)[0]))
  if (xs.every((x) => number(x) !== null)) return { at: number, names: null, time: false }
  if (xs.every((x) => typeof x === 'string' && DAY.test(x) && !Number.isNaN(Date.parse(x))))
    return { at: (x) => Date.parse(x as string), names: null, time: true }
  const names = [...new Set(xs.map(String))]
  const index = new Map(names.map((n, i) => [n, i]))
  return { at: (x) => index.get(String(x)) ?? null, names, time: false }
}

function pointChart(c: Raw, kind: 'line' | 'scatter') {
  const rows = list(c['elements']).filter(isRaw)
  const { at, names, time } = places(rows)
  const series = rows.map((e, i) => ({
    label: text(e['label']) || `series ${i + 1}`,
    points: list(e['points'])
      .slice(0, MOST_POINTS)
      .flatMap((p) => {
        const [px, py] = list(p)
        const x = at(px)
        const y = number(py)
        return x === null || y === null ? [] : [{ x, y, name: String(px) }]
      }),
  }))
  return { kind, series, names, time }
}

function barChart(c: Raw) {
  const rows = list(c['elements']).filter(isRaw)
  const labels: string[] = []
  const groups: string[] = []
  const values = new Map<string, number>()
  let sideways = false
  for (const r of rows) {
    let label = r['label']
    let v = number(r['value'])
    if (v === null && number(label) !== null) {
      v = number(label)
      label = r['value']
      sideways = true
    }
    const group = text(r['group'])
    if (v === null) continue
    const name = String(label ?? '')
    if (!labels.includes(name)) labels.push(name)
    if (!groups.includes(group)) groups.push(group)
    values.set(`${name}\n${group}`, v)
  }
  return {
    kind: 'bar' as const,
    sideways,
    bars: { groups, labels, value: (l: string, g: string) => values.get(`${l}\n${g}`) },
  }
}

function pieChart(c: Raw) {
  const rows = list(c['elements']).filter(isRaw)
  const angles = rows.map((r) => Math.max(0, number(r['angle']) ?? 0))
  const all = angles.reduce((a, b) => a + b, 0) || 1
  return { kind: 'pie' as const, slices: rows.map((r, i) => ({ label: text(r['label']), share: angles[i]! / all })) }
}

function boxChart(c: Raw) {
  const rows = list(c['elements']).filter(isRaw)
  const out: BoxRow[] = []
  for (const r of rows) {
    const five = ['min', 'first_quartile', 'median', 'third_quartile', 'max'].map((k) => number(r[k]))
    if (five.some((v) => v === null)) continue
    const [min, q1, median, q3, max] = five as [number, number, number, number, number]
    const outliers = list(r['outliers']).flatMap((v) => number(v) ?? [])
    out.push({ label: text(r['label']), min, q1, median, q3, max, outliers })
  }
  return { kind: 'box' as const, rows: out }
}

function body(c: Raw) {
  switch (c['type']) {
    case 'line':
    case 'scatter':
      return pointChart(c, c['type'])
    case 'bar':
      return barChart(c)
    case 'pie':
      return pieChart(c)
    case 'box_and_whisker':
      return boxChart(c)
    default:
      return null
  }
}

/** The drawings of a chart: one, or those of a figure with several axes. */
export function drawings(chart: unknown): Drawing[] {
  if (!isRaw(chart)) return []
  if (chart['type'] === 'superchart') return list(chart['elements']).slice(0, 16).flatMap(drawings)
  const b = body(chart)
  if (!b) return []
  return [
    { title: text(chart['title']), xLabel: labelled(chart, 'x'), yLabel: labelled(chart, 'y'), ...b } as Drawing,
  ]
}

/** About `want` round numbers from low to high. */
export function ticks(low: number, high: number, want = 5): number[] {
  if (!(high > low)) return [low]
  const rough = (high - low) / want
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? rough
  const out: number[] = []
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9 && out.length < 100; v += step)
    out.push(Math.abs(v) < step * 1e-9 ? 0 : v)
  return out
}

export function shortNumber(v: number): string {
  if (v === 0) return '0'
  const a = Math.abs(v)
  if (a >= 1e6 || a < 1e-3) return v.toExponential(1).replace('e+', 'e')
  if (a >= 1000) return v.toLocaleString('en', { maximumFractionDigits: 0 })
  return String(Number(v.toPrecision(4)))
}
