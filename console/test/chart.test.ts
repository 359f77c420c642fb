// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { drawings, shortNumber, ticks } from '../src/lib/chart'

test('lines and points become numbers; names get places', () => {
  const [d] = drawings({
    type: 'line',
    title: 'T',
    x_label: 'x',
    x_unit: 's',
    elements: [
      {
        label: 'a',
        points: [
          [0, '1.5'],
          [1, 2],
        ],
      },
    ],
  })
  expect(d).toMatchObject({ kind: 'line', title: 'T', xLabel: 'x (s)', names: null })
  expect(d!.kind === 'line' && d!.series[0]!.points.map((p) => [p.x, p.y])).toEqual([
    [0, 1.5],
    [1, 2],
  ])
  const [n] = drawings({
    type: 'scatter',
    elements: [
      {
        label: '',
        points: [
          ['b', 1],
          ['a', 2],
        ],
      },
    ],
  })
  expect(n!.kind === 'scatter' && n!.names).toEqual(['b', 'a'])
  const [t] = drawings({
    type: 'line',
    elements: [
      {
        label: '',
        points: [
          ['2026-01-01', 1],
          ['2026-01-02', 2],
        ],
      },
    ],
  })
  expect(t!.kind === 'line' && t!.time).toBe(true)
})

test('bars by label and group, also those that lie on their side', () => {
  const [d] = drawings({
    type: 'bar',
    elements: [
      { label: 'x', group: 'g', value: 2 },
      { label: 'y', group: 'h', value: '3' },
    ],
  })
  expect(d!.kind === 'bar' && [d!.bars.value('x', 'g'), d!.bars.value('y', 'h'), d!.bars.value('x', 'h')]).toEqual([
    2,
    3,
    undefined,
  ])
  const [s] = drawings({ type: 'bar', elements: [{ label: 4, group: '', value: 'name' }] })
  expect(s!.kind === 'bar' && [s!.sideways, s!.bars.labels]).toEqual([true, ['name']])
})

test('shares of a pie sum to one, boxes need five numbers', () => {
  const [p] = drawings({
    type: 'pie',
    elements: [
      { label: 'a', angle: 90 },
      { label: 'b', angle: 270 },
    ],
  })
  expect(p!.kind === 'pie' && p!.slices.map((s) => s.share)).toEqual([0.25, 0.75])
  const five = { min: 1, first_quartile: 2, median: 3, third_quartile: 4, max: 5, outliers: [9, 'x'] }
  const [b] = drawings({
    type: 'box_and_whisker',
    elements: [
      { label: 'a', ...five },
      { label: 'b', min: 1 },
    ],
  })
  expect(b!.kind === 'box' && b!.rows).toMatchObject([{ label: 'a', outliers: [9] }])
})

test('a figure with several axes is several drawings, but not without end', () => {
  const bar = { type: 'bar', elements: [] }
  expect(drawings({ type: 'superchart', elements: [bar, bar] }).length).toBe(2)
  expect(drawings({ type: 'superchart', elements: Array(100).fill(bar) }).length).toBe(16)
})

test('what is no chart is none', () => {
  for (const bad of [null, 1, 'x', [], {}, { type: 'unknown', elements: [] }]) expect(drawings(bad)).toEqual([])
  const [d] = drawings({
    type: 'line',
    title: { x: 1 },
    elements: [null, 3, { points: 'no' }, { points: [[1], ['a', {}]] }],
  })
  expect(d!.kind === 'line' && [d!.title, d!.series.every((s) => s.points.length === 0)]).toEqual(['', true])
})

test('ticks are round numbers inside the range', () => {
  expect(ticks(0, 10)).toEqual([0, 2, 4, 6, 8, 10])
  expect(ticks(-1, 1, 4)).toEqual([-1, -0.5, 0, 0.5, 1])
  expect(ticks(5, 5)).toEqual([5])
  expect([0, 1234.5, 0.00001, 2.5].map(shortNumber)).toEqual(['0', '1,235', '1.0e-5', '2.5'])
})
