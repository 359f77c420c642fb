// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { append, toIpynb, toPy, type Cell } from '../src/lib/notebook'

const cell = (o: Partial<Cell>): Cell => ({
  id: 'c1',
  language: 'python',
  source: '',
  outputs: [],
  running: false,
  ...o,
})

test('pieces of one stream join, others stand apart', () => {
  let c = cell({})
  for (const [name, text] of [
    ['stdout', 'a'],
    ['stdout', 'b'],
    ['stderr', 'x'],
    ['stdout', 'c'],
  ] as const)
    c = append(c, { kind: 'stream', name, text })
  expect(c.outputs.map((o) => o.kind === 'stream' && o.text)).toEqual(['ab', 'x', 'c'])
})

test('endless output loses its beginning and says so', () => {
  let c = cell({})
  for (let i = 0; i < 50; i++) c = append(c, { kind: 'stream', name: 'stdout', text: 'x'.repeat(10_000) })
  const o = c.outputs[0]!
  expect(o.kind === 'stream' && o.text.length).toBe(400_000)
  expect(c.dropped).toBe(true)
})

test('a notebook leaves as version 4.5 with results by type', () => {
  const nb = JSON.parse(
    toIpynb([
      cell({
        source: 'df',
        count: 3,
        outputs: [
          { kind: 'stream', name: 'stdout', text: 'hi\n' },
          { kind: 'result', main: true, forms: { text: 't', html: '<b>', png: 'AA==', extra: { 'x/y': 1 } } },
          { kind: 'error', name: 'E', value: 'v', traceback: 'a\nb' },
        ],
      }),
      cell({ id: 'c2', language: 'markdown', source: '# T' }),
      cell({ id: 'c3', language: 'bash', source: 'ls' }),
    ]),
  )
  expect([nb.nbformat, nb.nbformat_minor]).toEqual([4, 5])
  expect(nb.cells[0].outputs[1]).toEqual({
    output_type: 'execute_result',
    execution_count: 3,
    metadata: {},
    data: { 'text/plain': 't', 'text/html': '<b>', 'image/png': 'AA==', 'x/y': 1 },
  })
  expect(nb.cells[0].outputs[2].traceback).toEqual(['a', 'b'])
  expect(nb.cells[1].cell_type).toBe('markdown')
  expect(nb.cells[2].source).toBe('%%bash\nls')
})

test('as a program only Python is code', () => {
  const text = toPy([
    cell({ source: 'x = 1' }),
    cell({ language: 'markdown', source: 'T\n\nU' }),
    cell({ language: 'bash', source: 'rm -rf /' }),
  ])
  expect(text).toBe('# %%\nx = 1\n\n# %% [markdown]\n# T\n#\n# U\n\n# %% [bash]\n# rm -rf /\n')
})
