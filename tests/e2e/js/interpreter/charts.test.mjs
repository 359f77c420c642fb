// SPDX-License-Identifier: Apache-2.0
// Charts as the JavaScript SDK hands them over: raw objects, null for "none".

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sharedCell } from '../support/box.mjs'

const cell = sharedCell()

async function draw(code) {
  const done = await cell.it.runCode(`import matplotlib.pyplot as plt, numpy as np\n${code}\nplt.show()`)
  assert.equal(done.error, undefined)
  return done.results[0].chart
}

test('a bar chart has a value per label', async () => {
  const chart = await draw(
    "plt.bar(['Author A','Author B'], [100,200], label='Books Sold'); plt.xlabel('Authors')",
  )
  assert.deepEqual(chart, {
    type: 'bar',
    title: null,
    elements: [
      { label: 'Author A', group: 'Books Sold', value: 100 },
      { label: 'Author B', group: 'Books Sold', value: 200 },
    ],
    x_label: 'Authors',
    y_label: null,
    x_unit: null,
    y_unit: null,
  })
})

test('a logarithmic axis has a log scale', async () => {
  const chart = await draw(
    "x = np.linspace(1, 100, 100); plt.plot(x, np.exp(x), label='y = e^x'); plt.yscale('log')\n" +
      "plt.ylabel('Y-axis (log scale)')",
  )
  assert.equal(chart.type, 'line')
  assert.deepEqual([chart.x_scale, chart.y_scale, chart.y_unit], ['linear', 'log', 'log scale'])
  assert.equal(chart.elements[0].points.length, 100)
  assert.ok(chart.y_ticks.every((tick) => typeof tick === 'number'))
})

test('a scatter chart has its points by label', async () => {
  const chart = await draw("plt.scatter([1,2],[3,4],label='A'); plt.scatter([5],[6],label='B')")
  assert.equal(chart.title, null)
  assert.deepEqual(
    chart.elements.map(({ label, points }) => [label, points.length]),
    [
      ['A', 2],
      ['B', 1],
    ],
  )
  assert.ok(chart.x_tick_labels.every((label) => typeof label === 'string'))
})

test('a pie chart has an angle per part', async () => {
  const chart = await draw("plt.pie([90, 10], labels=['a', 'b'])")
  assert.deepEqual(chart.elements, [
    { label: 'a', angle: 324, radius: 1 },
    { label: 'b', angle: 36, radius: 1 },
  ])
})

test('a box plot has its quartiles', async () => {
  const chart = await draw('plt.boxplot([[1,2,3,4,5]], patch_artist=True)')
  assert.equal(chart.type, 'box_and_whisker')
  const { min, first_quartile, median, third_quartile, max, outliers } = chart.elements[0]
  assert.deepEqual([min, first_quartile, median, third_quartile, max, outliers], [1, 2, 3, 4, 5, []])
})

test('a histogram is a bar chart with its bins beside', async () => {
  const chart = await draw('plt.hist([1, 1, 2], bins=[0.5, 1.5, 2.5])')
  assert.equal(chart.type, 'bar')
  assert.deepEqual(
    chart.elements.map(({ value }) => value),
    [2, 1],
  )
  assert.equal(chart.cloche.type, 'histogram')
  assert.deepEqual(chart.cloche.elements[0].bins, [
    [0.5, 1.5, 2],
    [1.5, 2.5, 1],
  ])
})

test('subplots are a superchart, and an image is unknown', async () => {
  const chart = await draw('f, (a, b) = plt.subplots(1, 2); a.plot([1]); b.imshow(np.eye(2))')
  assert.equal(chart.type, 'superchart')
  assert.equal(chart.title, '')
  assert.deepEqual(
    chart.elements.map((element) => element.type),
    ['line', 'unknown'],
  )
})
