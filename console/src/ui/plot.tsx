// SPDX-License-Identifier: Apache-2.0
// Values over time, by uPlot. Colours come from the style sheet, so dark and light are redrawn.
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { dark } from '../app/theme'
import { clock } from '../lib/format'
import './plot.css'

// Steps of the value axis; those of bytes are round in their own units.
const BYTES = Array.from({ length: 45 }, (_, i) => 2 ** i)

export interface Line {
  label: string
  values: (number | null)[]
  color: string // a variable's name: "--accent"
  fill?: boolean
}

export interface PlotProps {
  times: number[]
  lines: Line[]
  format: (v: number) => string
  max?: number
  binary?: boolean // values are bytes
  label: string
}

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

// Seconds only where minutes would repeat.
const tick = (v: number, all: number[]) =>
  clock(new Date(v * 1000).toISOString()).slice(0, (all[1] ?? 60) - (all[0] ?? 0) < 60 ? 8 : 5)

function options(p: PlotProps, width: number): uPlot.Options {
  const { lines, format, max } = p
  const axis = {
    stroke: css('--soft'),
    grid: { stroke: css('--line'), width: 1 },
    ticks: { show: false },
    font: `11px ${css('--sans')}`,
  }
  return {
    width,
    height: 170,
    cursor: { y: false, points: { size: 6 } },
    legend: { live: true },
    scales: { y: { range: (_u, low, high) => [Math.min(0, low), Math.max(max ?? 0, high * 1.1, 1e-6)] } },
    axes: [
      { ...axis, space: 70, values: (_u, vs) => vs.map((v) => tick(v, vs)) },
      { ...axis, size: 58, values: (_u, vs) => vs.map(format), ...(p.binary ? { incrs: BYTES } : {}) },
    ],
    series: [
      { label: 'Time', value: (_u, v) => (v ? clock(new Date(v * 1000).toISOString()) : '–') },
      ...lines.map((l) => ({
        label: l.label,
        stroke: css(l.color),
        width: 1.5,
        fill: l.fill ? `color-mix(in srgb, ${css(l.color)} 12%, transparent)` : undefined,
        points: { show: false },
        value: (_u: uPlot, v: number | null) => (v === null || v === undefined ? '–' : format(v)),
      })),
    ],
  }
}

export function Plot(p: PlotProps) {
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const theme = dark.value
  const data = [p.times, ...p.lines.map((l) => l.values)] as uPlot.AlignedData
  useEffect(() => {
    const el = host.current!
    const u = new uPlot(options(p, el.clientWidth || 300), data, el)
    plot.current = u
    const watch = new ResizeObserver(() => u.setSize({ width: el.clientWidth, height: 170 }))
    watch.observe(el)
    return () => {
      watch.disconnect()
      u.destroy()
    }
  }, [theme])
  useEffect(() => plot.current?.setData(data), [p.times])
  return <div class="plot" ref={host} role="img" aria-label={p.label} />
}
