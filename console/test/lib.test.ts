// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { bytes, duration, plural, readVariables } from '../src/lib/format'
import { fit } from '../src/lib/fuzzy'
import { History } from '../src/lib/history'
import { match } from '../src/lib/match'
import { netLine } from '../src/lib/network'
import { inside, looksLikeText, parent, pictureType, steps } from '../src/lib/paths'
import { listeners } from '../src/lib/ports'
import type { Metric } from '../src/lib/types'

test('paths meet their pages, and parameters are nothing but ids', () => {
  expect(match('/sandboxes/:id/:tab?', '/sandboxes/abc')).toEqual({ id: 'abc' })
  expect(match('/sandboxes/:id/:tab?', '/sandboxes/a-b_c.d/files')).toEqual({ id: 'a-b_c.d', tab: 'files' })
  for (const id of ['a%2Fb', '..', '.', '...', '%2e%2e', '..%2Fbox', 'a%5Cb', 'a?b', 'a b', 'é', 'a%00'])
    expect(match('/sandboxes/:id/:tab?', `/sandboxes/${id}`), id).toBeNull()
  expect(match('/sandboxes', '/sandboxes/abc')).toBeNull()
  expect(match('/sandboxes/:id', '/sandboxes')).toBeNull()
  expect(match('/x/:id', '/x/%E0%A4%A')).toBeNull()
})

test('sizes, times and counts as people read them', () => {
  expect([0, 999, 1536, 10 * 1048576, 5e12].map(bytes)).toEqual(['0 B', '999 B', '1.5 KB', '10.0 MB', '4.5 TB'])
  expect([-5, 59e3, 93e3, 3600e3, 5000e3, 90 * 3600e3].map(duration)).toEqual([
    '0s',
    '59s',
    '1m 33s',
    '1h 0m',
    '1h 23m',
    '3d',
  ])
  expect(plural(1, 'box', 'boxes') + plural(1200, 'box', 'boxes')).toBe('1 box1,200 boxes')
})

test('variables keep everything behind the first equals sign', () => {
  expect(readVariables('A=1\n# note\n\nB = x=y ')).toEqual({ values: { A: '1', B: ' x=y ' } })
  expect(readVariables('nothing').error).toContain('nothing')
  expect(readVariables('=x').error).toBeDefined()
})

test('the palette prefers beginnings of words', () => {
  expect(fit('gs', 'Go to Sandboxes')).toBeGreaterThan(fit('gs', 'big rows'))
  expect(fit('xyz', 'Go to Sandboxes')).toBe(0)
  expect(fit('', 'anything')).toBeGreaterThan(0)
})

test('history is bounded, in order, and forgets what is gone', () => {
  const h = new History()
  for (let i = 0; i < 50; i++) h.add('a', { timestamp: String(1000 + i) } as Metric)
  h.add('a', { timestamp: '1000' } as Metric)
  expect(h.of('a').length).toBe(30)
  expect(h.of('a')[29]!.timestamp).toBe('1049')
  h.keep(new Set(['b']))
  expect(h.of('a')).toEqual([])
})

test('listening sockets are found, those of the agent left out', () => {
  const text = `  sl  local_address rem_address   st
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000
   1: 00000000:0050 00000000:0000 0A 00000000:00000000
   2: 00000000:C33F 00000000:0000 0A 00000000:00000000
   3: 0100007F:1F90 0100007F:0011 01 00000000:00000000
   4: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0
   garbage 0:1 0A`
  expect(listeners(text)).toEqual([
    { port: 80, all: true },
    { port: 8080, all: true },
  ])
})

test('paths of files', () => {
  expect([parent('/a/b'), parent('/a'), parent('/')]).toEqual(['/a', '/', '/'])
  expect([inside('/', 'x'), inside('/a', 'x')]).toEqual(['/x', '/a/x'])
  expect(steps('/a/b').map((s) => s.path)).toEqual(['/', '/a', '/a/b'])
  expect(pictureType('X.PNG')).toBe('image/png')
  expect(pictureType('x.html')).toBeUndefined()
})

test('text is told from bytes, also when it is cut inside a character', () => {
  expect(looksLikeText(new TextEncoder().encode('héllo'))).toBe(true)
  expect(looksLikeText(new Uint8Array([1, 0, 2]))).toBe(false)
  expect(looksLikeText(new Uint8Array([0xff, 0xfe, 0x41]))).toBe(false)
  expect(looksLikeText(new TextEncoder().encode('é'.repeat(9000)))).toBe(true)
})

test('entries of the network log in one line', () => {
  expect(netLine({ timestamp: '', type: 'name', name: 'a.b', addresses: ['1.2.3.4'] })).toBe('a.b → 1.2.3.4')
  expect(
    netLine({ timestamp: '', type: 'connection', protocol: 'tcp', address: '10.0.0.7', port: 22, reason: 'range' }),
  ).toBe('tcp 10.0.0.7:22, an address no sandbox reaches')
})
