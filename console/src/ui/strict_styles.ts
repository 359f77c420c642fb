// SPDX-License-Identifier: Apache-2.0
// xterm.js writes style elements, which the page's policy forbids. While it is opened it gets other elements in their
// place whose text becomes an adopted style sheet.

function standIn(d: Document, sheets: CSSStyleSheet[]): HTMLElement {
  const element = Document.prototype.createElement.call(d, 'template')
  const sheet = new CSSStyleSheet()
  sheets.push(sheet)
  d.adoptedStyleSheets = [...d.adoptedStyleSheets, sheet]
  Object.defineProperty(element, 'textContent', { set: (text: string) => sheet.replaceSync(text), get: () => '' })
  return element
}

/** Runs `make`, which must be synchronous; what comes back takes the style sheets away again. */
export function strictStyles(d: Document, make: () => void): () => void {
  const sheets: CSSStyleSheet[] = []
  d.createElement = ((tag: string, options?: ElementCreationOptions) =>
    tag.toLowerCase() === 'style'
      ? standIn(d, sheets)
      : Document.prototype.createElement.call(d, tag, options)) as typeof d.createElement
  try {
    make()
  } finally {
    delete (d as { createElement?: unknown }).createElement
  }
  return () => {
    d.adoptedStyleSheets = d.adoptedStyleSheets.filter((s) => !sheets.includes(s))
  }
}
