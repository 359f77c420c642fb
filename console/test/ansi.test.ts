// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { ansi, overwrite } from '../src/lib/ansi'

const shown = (text: string) =>
  ansi(text)
    .map((p) => p.text)
    .join('')

test('colours and weight become classes, and end with a reset', () => {
  expect(ansi('a\x1b[1;31mb\x1b[0mc')).toEqual([
    { text: 'a', classes: '' },
    { text: 'b', classes: 'b f1' },
    { text: 'c', classes: '' },
  ])
})

test('colours of 256 and of 24 bits come down to the sixteen', () => {
  expect(ansi('\x1b[38;5;196mx')[0]!.classes).toBe('f9')
  expect(ansi('\x1b[38;2;0;255;0mx')[0]!.classes).toBe('f10')
  expect(ansi('\x1b[48;5;4mx')[0]!.classes).toBe('g4')
})

test('moves, titles and unfinished sequences are left out', () => {
  expect(shown('a\x1b[2Kb\x1b]0;title\x07c\x1b[10;3Hd\x1b')).toBe('abcd')
})

test('markup in output stays text', () => {
  expect(ansi('<img src=x onerror=alert(1)>')).toEqual([{ text: '<img src=x onerror=alert(1)>', classes: '' }])
})

test('a progress bar keeps its last state', () => {
  expect(overwrite('10%\r50%\r100%\ndone')).toBe('100%\ndone')
  expect(overwrite('abcdef\rxy')).toBe('xycdef')
  expect(overwrite('a\r\nb')).toBe('a\nb')
})
