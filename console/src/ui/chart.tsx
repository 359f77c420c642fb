// SPDX-License-Identifier: Apache-2.0
// Charts drawn again from the numbers that were extracted from them, with the numbers under the pointer.
import { useRef, useState } from 'preact/hooks'
import { shortNumber, ticks, type Bars, type BoxRow, type Drawing, type Series } from '../lib/chart'

const W = 640
const H = 320
const M = { left: 62, right: 16, top: 12, bottom: 44 }
const COLOURS = 8

interface Tip {
  x: number
  y: number
  lines: string[]
}
type Show = (tip: Tip | null) => void

const scale = (low: number, high: number, from: number, to: number) => (v: number) =>
  from + ((v - low) / (high - low || 1)) * (to - from)

function Axes(p: { xs: { at: number; text: string }[]; ys: { at: number; text: string }[]; d: Drawing }) {
  return (
    <g class="axes">
      {p.ys.map((t) => (
        <g key={t.at}>
          <line x1={M.left} x2={W - M.right} y1={t.at} y2={t.at} />
          <text x={M.left - 8} y={t.at + 4} text-anchor="end">
            {t.text}
          </text>
        </g>
      ))}
      {p.xs.map((t, i) => (
        <text key={i} x={t.at} y={H - M.bottom + 17} text-anchor="middle">
          {t.text.length > 14 ? t.text.slice(0, 13) + '…' : t.text}
        </text>
      ))}
      <text class="label" x={(M.left + W - M.right) / 2} y={H - 6} text-anchor="middle">
        {p.d.xLabel}
      </text>
      <text class="label" transform={`translate(14 ${(H - M.bottom + M.top) / 2}) rotate(-90)`} text-anchor="middle">
        {p.d.yLabel}
      </text>
    </g>
  )
}

const range = (values: number[]): [number, number] => {
  let low = Infinity
  let high = -Infinity
  for (const v of values) {
    if (v < low) low = v
    if (v > high) high = v
  }
  if (low === Infinity) return [0, 1]
  return low === high ? [low - 1, high + 1] : [low, high]
}

const yTicks = (low: number, high: number, y: (v: number) => number) =>
  ticks(low, high, 5).map((v) => ({ at: y(v), text: shortNumber(v) }))

function Points({ d, series, show }: { d: Drawing & { kind: 'line' | 'scatter' }; series: Series[]; show: Show }) {
  const all = series.flatMap((s) => s.points)
  const [x0, x1] = range(all.map((p) => p.x))
  const [y0, y1] = range(all.map((p) => p.y))
  const pad = (y1 - y0) * 0.05
  const x = scale(x0, x1, M.left + 8, W - M.right - 8)
  const y = scale(y0 - pad, y1 + pad, H - M.bottom, M.top)
  const date = (v: number) => new Date(v).toISOString().slice(0, 10)
  const every = d.names ? Math.ceil(d.names.length / 10) : 1
  const xs = d.names
    ? d.names.flatMap((n, i) => (i % every ? [] : [{ at: x(i), text: n }]))
    : ticks(x0, x1, 6).map((v) => ({ at: x(v), text: d.time ? date(v) : shortNumber(v) }))
  const near = (px: number, py: number) => {
    let best: { s: Series; p: Series['points'][number] } | undefined
    let least = 40 * 40
    for (const s of series)
      for (const p of s.points) {
        const dist = (x(p.x) - px) ** 2 + (y(p.y) - py) ** 2
        if (dist < least) {
          least = dist
          best = { s, p }
        }
      }
    show(best ? { x: x(best.p.x), y: y(best.p.y), lines: [best.s.label, `${best.p.name} → ${best.p.y}`] } : null)
  }
  return (
    <g>
      <Axes d={d} xs={xs} ys={yTicks(y0 - pad, y1 + pad, y)} />
      {series.map((s, i) => (
        <g key={i} class={`c${i % COLOURS}`}>
          {d.kind === 'line' && (
            <polyline points={s.points.map((p) => `${x(p.x).toFixed(1)},${y(p.y).toFixed(1)}`).join(' ')} />
          )}
          {(d.kind === 'scatter' || s.points.length < 60) &&
            s.points.map((p, k) => <circle key={k} cx={x(p.x)} cy={y(p.y)} r={d.kind === 'scatter' ? 3.5 : 2.4} />)}
        </g>
      ))}
      <rect
        class="catch"
        x={M.left}
        y={0}
        width={W - M.left}
        height={H - M.bottom}
        onMouseMove={(e) => {
          const box = (e.currentTarget.ownerSVGElement as SVGSVGElement).getBoundingClientRect()
          near(((e.clientX - box.left) / box.width) * W, ((e.clientY - box.top) / box.height) * H)
        }}
        onMouseLeave={() => show(null)}
      />
    </g>
  )
}

function BarRows({ d, bars, show }: { d: Drawing; bars: Bars; show: Show }) {
  const values = bars.labels.flatMap((l) => bars.groups.map((g) => bars.value(l, g) ?? 0))
  const [y0, y1] = range([0, ...values])
  const y = scale(y0, y1 * 1.05, H - M.bottom, M.top)
  const slot = (W - M.left - M.right) / Math.max(bars.labels.length, 1)
  const wide = (slot * 0.76) / bars.groups.length
  return (
    <g>
      <Axes
        d={d}
        xs={bars.labels.map((l, i) => ({ at: M.left + slot * (i + 0.5), text: l }))}
        ys={yTicks(y0, y1 * 1.05, y)}
      />
      {bars.labels.flatMap((l, i) =>
        bars.groups.map((g, k) => {
          const v = bars.value(l, g)
          if (v === undefined) return null
          const left = M.left + slot * i + slot * 0.12 + wide * k
          const top = Math.min(y(v), y(0))
          const tip = {
            x: left + wide / 2,
            y: top,
            lines: [g && bars.groups.length > 1 ? `${l}, ${g}` : l, String(v)],
          }
          return (
            <rect
              key={`${i}-${k}`}
              class={`bar c${k % COLOURS}`}
              x={left}
              y={top}
              width={Math.max(wide - 1, 1)}
              height={Math.max(Math.abs(y(v) - y(0)), 0.5)}
              onMouseEnter={() => show(tip)}
              onMouseLeave={() => show(null)}
            />
          )
        }),
      )}
    </g>
  )
}

function Slices({ slices, show }: { slices: { label: string; share: number }[]; show: Show }) {
  const r = H / 2 - 22
  const cx = W / 2 - 90
  const cy = H / 2
  let from = -Math.PI / 2
  return (
    <g>
      {slices.map((s, i) => {
        const to = from + s.share * 2 * Math.PI
        const at = (a: number, k = 1) =>
          `${(cx + Math.cos(a) * r * k).toFixed(1)} ${(cy + Math.sin(a) * r * k).toFixed(1)}`
        const d = s.share > 0.999 ? '' : `M${cx} ${cy}L${at(from)}A${r} ${r} 0 ${s.share > 0.5 ? 1 : 0} 1 ${at(to)}Z`
        const middle = (from + to) / 2
        const tip = {
          x: cx + Math.cos(middle) * r * 0.6,
          y: cy + Math.sin(middle) * r * 0.6,
          lines: [s.label, `${(s.share * 100).toFixed(1)}%`],
        }
        from = to
        const on = { onMouseEnter: () => show(tip), onMouseLeave: () => show(null) }
        return (
          <g key={i} class={`c${i % COLOURS}`}>
            {d ? <path class="slice" d={d} {...on} /> : <circle class="slice" cx={cx} cy={cy} r={r} {...on} />}
            <rect class="bar" x={W - 190} y={24 + i * 19} width={10} height={10} />
            <text class="legend" x={W - 174} y={33 + i * 19}>
              {s.label.slice(0, 20)} {(s.share * 100).toFixed(1)}%
            </text>
          </g>
        )
      })}
    </g>
  )
}

function Boxes({ d, rows, show }: { d: Drawing; rows: BoxRow[]; show: Show }) {
  const [y0, y1] = range(rows.flatMap((r) => [r.min, r.max, ...r.outliers]))
  const pad = (y1 - y0) * 0.06
  const y = scale(y0 - pad, y1 + pad, H - M.bottom, M.top)
  const slot = (W - M.left - M.right) / Math.max(rows.length, 1)
  return (
    <g>
      <Axes
        d={d}
        xs={rows.map((r, i) => ({ at: M.left + slot * (i + 0.5), text: r.label }))}
        ys={yTicks(y0 - pad, y1 + pad, y)}
      />
      {rows.map((r, i) => {
        const cx = M.left + slot * (i + 0.5)
        const half = Math.min(slot * 0.28, 34)
        const tip = {
          x: cx,
          y: y(r.q3),
          lines: [r.label, `max ${r.max}`, `75% ${r.q3}`, `median ${r.median}`, `25% ${r.q1}`, `min ${r.min}`],
        }
        return (
          <g key={i} class="box c0" onMouseEnter={() => show(tip)} onMouseLeave={() => show(null)}>
            <line x1={cx} x2={cx} y1={y(r.min)} y2={y(r.max)} />
            <rect x={cx - half} y={y(r.q3)} width={2 * half} height={Math.max(y(r.q1) - y(r.q3), 0.5)} />
            <line class="median" x1={cx - half} x2={cx + half} y1={y(r.median)} y2={y(r.median)} />
            {r.outliers.map((o, k) => (
              <circle key={k} cx={cx} cy={y(o)} r={2.5} />
            ))}
          </g>
        )
      })}
    </g>
  )
}

function Legend({ names }: { names: string[] }) {
  if (names.length < 2) return null
  return (
    <ul class="chartlegend">
      {names.slice(0, 24).map((n, i) => (
        <li key={i} class={`c${i % COLOURS}`}>
          <i /> {n}
        </li>
      ))}
    </ul>
  )
}

export function ChartView({ d }: { d: Drawing }) {
  const [tip, setTip] = useState<Tip | null>(null)
  const ref = useRef<SVGSVGElement>(null)
  const names =
    d.kind === 'bar' ? d.bars.groups : d.kind === 'line' || d.kind === 'scatter' ? d.series.map((s) => s.label) : []
  return (
    <figure class="chart">
      {d.title && <figcaption>{d.title}</figcaption>}
      <svg ref={ref} viewBox={`0 0 ${W} ${H}`} role="img" aria-label={`${d.kind} chart ${d.title}`}>
        {(d.kind === 'line' || d.kind === 'scatter') && <Points d={d} series={d.series} show={setTip} />}
        {d.kind === 'bar' && <BarRows d={d} bars={d.bars} show={setTip} />}
        {d.kind === 'pie' && <Slices slices={d.slices} show={setTip} />}
        {d.kind === 'box' && <Boxes d={d} rows={d.rows} show={setTip} />}
        {tip && (
          <g
            class="tip"
            transform={`translate(${Math.min(Math.max(tip.x, 80), W - 80)} ${Math.max(tip.y - 14 - 16 * tip.lines.length, 4)})`}
          >
            <rect x={-76} y={0} width={152} height={16 * tip.lines.length + 8} rx={5} />
            {tip.lines.map((l, i) => (
              <text key={i} x={0} y={16 + i * 16} text-anchor="middle">
                {l.length > 24 ? l.slice(0, 23) + '…' : l}
              </text>
            ))}
          </g>
        )}
      </svg>
      <Legend names={names} />
    </figure>
  )
}
