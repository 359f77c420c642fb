// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endCauseOf, FrameReader, LineReader, MAX_FRAME } from '../../dist-test/internals.js'
import { frame } from '../support/server.mjs'

const text = (payload) => Buffer.from(payload).toString()

test('envelopes are found wherever the bytes are cut', () => {
  const whole = Buffer.concat([frame({ a: 1 }), frame({}), frame({ b: 'é'.repeat(300) }), frame({}, 2)])
  for (let size = 1; size <= whole.length; size++) {
    const reader = new FrameReader()
    const found = []
    for (let at = 0; at < whole.length; at += size) found.push(...reader.push(whole.subarray(at, at + size)))
    assert.deepEqual(
      found.map(({ end, payload }) => [end, text(payload)]),
      [
        [false, '{"a":1}'],
        [false, '{}'],
        [false, `{"b":"${'é'.repeat(300)}"}`],
        [true, '{}'],
      ],
    )
    assert.equal(reader.partial, false)
  }
})

test('an envelope that says it is huge is refused before it is kept', () => {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(MAX_FRAME + 1, 1)
  assert.throws(() => new FrameReader().push(head), /an envelope of 67108865 bytes/)
})

test('a compressed envelope is refused', () => {
  assert.throws(() => new FrameReader().push(frame({}, 1)), /compressed/)
})

test('lines are found wherever the bytes are cut, also inside a character', () => {
  const whole = Buffer.from('{"a":"é\u2028"}\n\n{"b":2}\nlast')
  for (let size = 1; size <= whole.length; size++) {
    const reader = new LineReader()
    const found = []
    for (let at = 0; at < whole.length; at += size) found.push(...reader.push(whole.subarray(at, at + size)))
    found.push(...reader.end())
    assert.deepEqual(found, ['{"a":"é\u2028"}', '', '{"b":2}', 'last'])
  }
})

test('the cause of an end is read from what the server says', () => {
  const edge = 'The sandbox was not found: it ended at 2026-01-02T03:04:05.5Z, timeout: its lifetime of 1 s was over'
  assert.deepEqual(endCauseOf(edge), {
    reason: 'timeout',
    message: 'timeout: its lifetime of 1 s was over',
    at: new Date('2026-01-02T03:04:05.500Z'),
  })
  assert.equal(endCauseOf('it ended at 2026-01-02T03:04:05Z, out of memory').reason, 'out of memory')
  assert.equal(endCauseOf('The sandbox was not found'), undefined)
})
