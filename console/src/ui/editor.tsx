// SPDX-License-Identifier: Apache-2.0
// CodeMirror in a shadow tree: there its styles are adopted style sheets, which the page's policy allows without a
// word about inline styles.
import { autocompletion, completeAnyWord, closeBrackets } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { javascript } from '@codemirror/lang-javascript'
import { python } from '@codemirror/lang-python'
import { bracketMatching, HighlightStyle, indentUnit, StreamLanguage, syntaxHighlighting } from '@codemirror/language'
import { java } from '@codemirror/legacy-modes/mode/clike'
import { r } from '@codemirror/legacy-modes/mode/r'
import { shell } from '@codemirror/legacy-modes/mode/shell'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState, Prec, type Extension } from '@codemirror/state'
import { drawSelection, EditorView, keymap, lineNumbers, placeholder } from '@codemirror/view'
import { tags as t } from '@lezer/highlight'
import { useEffect, useRef } from 'preact/hooks'
import './code_colours.css'

const colours = HighlightStyle.define([
  { tag: [t.keyword, t.operatorKeyword, t.modifier], color: 'var(--c-key)' },
  { tag: [t.string, t.special(t.string), t.regexp], color: 'var(--c-str)' },
  { tag: [t.number, t.bool, t.null, t.atom], color: 'var(--c-num)' },
  { tag: [t.comment, t.meta], color: 'var(--soft)', fontStyle: 'italic' },
  { tag: [t.function(t.variableName), t.function(t.propertyName), t.labelName], color: 'var(--c-fun)' },
  { tag: [t.typeName, t.className, t.namespace], color: 'var(--c-typ)' },
  { tag: [t.definition(t.variableName)], color: 'var(--ink)' },
])

const look = EditorView.theme({
  '&': { color: 'var(--ink)', backgroundColor: 'transparent', fontSize: '13px' },
  '&.cm-focused': { outline: 'none' },
  '.cm-content': { fontFamily: 'var(--mono)', caretColor: 'var(--ink)', padding: '8px 0' },
  '.cm-line': { padding: '0 10px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55', overflow: 'auto' },
  '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--soft)', border: 'none', paddingLeft: '4px' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': {
    backgroundColor: 'color-mix(in srgb, var(--accent) 26%, transparent)',
  },
  '.cm-matchingBracket': { backgroundColor: 'color-mix(in srgb, var(--accent) 22%, transparent)', outline: 'none' },
  '.cm-placeholder': { color: 'var(--soft)' },
  '.cm-tooltip': {
    backgroundColor: 'var(--raised)',
    border: '1px solid var(--line)',
    borderRadius: '7px',
    color: 'var(--ink)',
  },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent-wash)', color: 'var(--ink)' },
  '.cm-panels': { backgroundColor: 'var(--sunk)', color: 'var(--ink)' },
  '.cm-searchMatch': { backgroundColor: 'color-mix(in srgb, var(--warm) 30%, transparent)' },
})

const NAMES: Record<string, string> = {
  py: 'python',
  js: 'javascript',
  mjs: 'javascript',
  cjs: 'javascript',
  ts: 'typescript',
  tsx: 'typescript',
  jsx: 'javascript',
  sh: 'bash',
  bash: 'bash',
  r: 'r',
  java: 'java',
  json: 'javascript',
}

/** The language of a file by its name; '' for plain text. */
export function languageOf(name: string): string {
  return NAMES[name.split('.').pop()?.toLowerCase() ?? ''] ?? ''
}

function grammar(language: string): Extension {
  switch (language) {
    case 'python':
      return [python(), indentUnit.of('    ')]
    case 'javascript':
      return javascript()
    case 'typescript':
      return javascript({ typescript: true })
    case 'bash':
      return StreamLanguage.define(shell)
    case 'r':
      return StreamLanguage.define(r)
    case 'java':
      return StreamLanguage.define(java)
    default:
      return []
  }
}

export interface EditorProps {
  value: string
  language: string
  label: string
  onChange?: (text: string) => void
  onRun?: (then: 'stay' | 'next') => void
  onSave?: () => void
  readOnly?: boolean
  numbers?: boolean
  focus?: boolean
  hint?: string
}

export function Editor(p: EditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | undefined>(undefined)
  const latest = useRef(p)
  latest.current = p
  const lang = useRef(new Compartment())
  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: 'open' })
    const run = (then: 'stay' | 'next') => () => {
      if (!latest.current.onRun) return false
      latest.current.onRun(then)
      return true
    }
    const save = () => {
      latest.current.onSave?.()
      return latest.current.onSave !== undefined
    }
    const v = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: p.value,
        extensions: [
          Prec.highest(
            keymap.of([
              { key: 'Shift-Enter', run: run('next') },
              { key: 'Ctrl-Enter', mac: 'Cmd-Enter', run: run('stay') },
              { key: 'Mod-s', run: save, preventDefault: true },
            ]),
          ),
          p.numbers ? lineNumbers() : [],
          history(),
          drawSelection(),
          bracketMatching(),
          closeBrackets(),
          highlightSelectionMatches(),
          autocompletion({ override: [completeAnyWord], activateOnTyping: false }),
          keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
          lang.current.of(grammar(p.language)),
          syntaxHighlighting(colours),
          look,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': p.label }),
          EditorState.readOnly.of(p.readOnly === true),
          p.hint ? placeholder(p.hint) : [],
          EditorView.updateListener.of((u) => u.docChanged && latest.current.onChange?.(u.state.doc.toString())),
        ],
      }),
    })
    view.current = v
    if (p.focus) v.focus()
    return () => v.destroy()
  }, [])
  useEffect(() => {
    view.current?.dispatch({ effects: lang.current.reconfigure(grammar(p.language)) })
  }, [p.language])
  useEffect(() => {
    const v = view.current
    if (v && p.value !== v.state.doc.toString())
      v.dispatch({ changes: { from: 0, to: v.state.doc.length, insert: p.value } })
  }, [p.value])
  useEffect(() => {
    if (p.focus) view.current?.focus()
  }, [p.focus])
  return <div class="cm-host" ref={host} />
}
