// SPDX-License-Identifier: Apache-2.0
// Escape sequences of terminals in output, as pieces of text with classes. Everything but colours and weight is left
// out; a lone carriage return starts its line anew, as progress bars mean it.

export interface Piece {
  text: string
  classes: string
}

const CSI = /\x1b(?:\[([0-9;:?<=>]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])/g

interface Style {
  bold: boolean
  dim: boolean
  italic: boolean
  underline: boolean
  fg: string
  bg: string
}

const plain = (): Style => ({ bold: false, dim: false, italic: false, underline: false, fg: '', bg: '' })

/** Of the 256 colours the first 16; the others to the nearest of them by hand of their cube. */
function indexed(n: number): number {
  if (n < 16) return n
  if (n >= 232) return n > 243 ? 7 : 8
  const v = n - 16
  const r = Math.floor(v / 36)
  const g = Math.floor(v / 6) % 6
  const b = v % 6
  const bright = Math.max(r, g, b) > 3 ? 8 : 0
  return bright + (r > 1 ? 1 : 0) + (g > 1 ? 2 : 0) + (b > 1 ? 4 : 0)
}

function extended(codes: number[], i: number): [string, number] {
  if (codes[i + 1] === 5) return [String(indexed(codes[i + 2] ?? 0)), i + 2]
  if (codes[i + 1] === 2) {
    const [r = 0, g = 0, b = 0] = codes.slice(i + 2, i + 5)
    const bit = (v: number) => (v > 110 ? 1 : 0)
    return [String((Math.max(r, g, b) > 190 ? 8 : 0) + bit(r) + 2 * bit(g) + 4 * bit(b)), i + 4]
  }
  return ['', i]
}

function apply(s: Style, codes: number[]) {
  for (let i = 0; i < codes.length; i++) {
    const c = codes[i]!
    if (c === 0) Object.assign(s, plain())
    else if (c === 1) s.bold = true
    else if (c === 2) s.dim = true
    else if (c === 3) s.italic = true
    else if (c === 4) s.underline = true
    else if (c === 22) s.bold = s.dim = false
    else if (c === 23) s.italic = false
    else if (c === 24) s.underline = false
    else if (c >= 30 && c <= 37) s.fg = String(c - 30)
    else if (c === 38) [s.fg, i] = extended(codes, i)
    else if (c === 39) s.fg = ''
    else if (c >= 40 && c <= 47) s.bg = String(c - 40)
    else if (c === 48) [s.bg, i] = extended(codes, i)
    else if (c === 49) s.bg = ''
    else if (c >= 90 && c <= 97) s.fg = String(c - 82)
    else if (c >= 100 && c <= 107) s.bg = String(c - 92)
  }
}

function classesOf(s: Style): string {
  const out: string[] = []
  if (s.bold) out.push('b')
  if (s.dim) out.push('d')
  if (s.italic) out.push('i')
  if (s.underline) out.push('u')
  if (s.fg) out.push(`f${s.fg}`)
  if (s.bg) out.push(`g${s.bg}`)
  return out.join(' ')
}

/** Lines that were written over by a carriage return keep what came last. */
export function overwrite(text: string): string {
  if (!text.includes('\r')) return text
  return text
    .replace(/\r+\n/g, '\n')
    .split('\n')
    .map((line) => {
      const parts = line.split('\r')
      return parts.reduce((shown, part) => (part.length >= shown.length ? part : part + shown.slice(part.length)), '')
    })
    .join('\n')
}

export function ansi(text: string): Piece[] {
  const source = overwrite(text)
  const out: Piece[] = []
  const style = plain()
  let at = 0
  const put = (t: string) => {
    if (!t) return
    const classes = classesOf(style)
    const last = out[out.length - 1]
    if (last && last.classes === classes) last.text += t
    else out.push({ text: t, classes })
  }
  for (const m of source.matchAll(CSI)) {
    put(source.slice(at, m.index))
    at = m.index + m[0].length
    if (m[2] === 'm') apply(style, (m[1] ?? '').split(/[;:]/).map(Number))
  }
  put(source.slice(at).replace(/\x1b/g, ''))
  return out
}
