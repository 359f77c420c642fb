// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { quantile, readMetrics, sum } from '../src/lib/prometheus'

const TEXT = `# HELP x y
x_total{class="a",status="2xx"} 3
x_total{class="b",status="2xx"} 4
t_bucket{class="a",le="1"} 5
t_bucket{class="a",le="2"} 10
t_bucket{class="a",le="+Inf"} 10
plain 7`

test('samples are summed by their labels', () => {
  const all = readMetrics(TEXT)
  expect([sum(all, 'x_total'), sum(all, 'x_total', { class: 'b' }), sum(all, 'plain'), sum(all, 'none')]).toEqual([
    7, 4, 7, 0,
  ])
})

test('quantiles lie between the bounds of their bucket', () => {
  const all = readMetrics(TEXT)
  expect(quantile(all, 't', 0.5)).toBeCloseTo(1)
  expect(quantile(all, 't', 0.75)).toBeCloseTo(1.5)
  expect(quantile(all, 'none', 0.5)).toBeNaN()
})
