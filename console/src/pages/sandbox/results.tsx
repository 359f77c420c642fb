// SPDX-License-Identifier: Apache-2.0
// What a cell gave, as a notebook shows it.
import { useState } from 'preact/hooks'
import { drawings } from '../../lib/chart'
import type { Forms, Output } from '../../lib/notebook'
import { save } from '../../lib/save'
import { ChartView } from '../../ui/chart'
import { Frame } from '../../ui/frame'
import { JsonTree } from '../../ui/json_tree'
import { Latex } from '../../ui/latex'
import { Markdown } from '../../ui/markdown'
import { Button } from '../../ui/parts'
import { Coloured } from './logs'

const NAMES: Record<string, string> = {
  chart: 'Chart',
  html: 'HTML',
  png: 'Picture',
  jpeg: 'Picture',
  svg: 'Drawing',
  latex: 'Formula',
  markdown: 'Markdown',
  json: 'JSON',
  javascript: 'Script',
  pdf: 'PDF',
  data: 'Data',
  text: 'Text',
}
// What is shown first; a chart is drawn again from its numbers.
const ORDER = [
  'chart',
  'html',
  'png',
  'jpeg',
  'svg',
  'latex',
  'markdown',
  'json',
  'javascript',
  'pdf',
  'text',
  'data',
]

const BASE64 = /^[A-Za-z0-9+/=\s]*$/
const isText = (v: unknown): v is string => typeof v === 'string'

function usable(name: string, value: unknown): boolean {
  if (value === undefined || value === null) return false
  if (name === 'chart') return drawings(value).length > 0
  if (name === 'json' || name === 'data') return true
  if (name === 'png' || name === 'jpeg' || name === 'pdf') return isText(value) && BASE64.test(value)
  return isText(value)
}

export function shownForms(forms: Forms): string[] {
  return ORDER.filter((n) => usable(n, forms[n]))
}

const bytesOf = (base64: string) => Uint8Array.from(atob(base64.replace(/\s/g, '')), (c) => c.charCodeAt(0))

/** Text of any kind as base64, for a data: URL. A picture runs no script of its own. */
const svgUrl = (svg: string) => {
  let binary = ''
  for (const b of new TextEncoder().encode(svg)) binary += String.fromCharCode(b)
  return `data:image/svg+xml;base64,${btoa(binary)}`
}

function Form({ name, value }: { name: string; value: unknown }) {
  const text = isText(value) ? value : ''
  switch (name) {
    case 'chart':
      return (
        <div class="charts">
          {drawings(value).map((d, i) => (
            <ChartView key={i} d={d} />
          ))}
        </div>
      )
    case 'html':
      return <Frame html={text} label="HTML result" />
    case 'javascript':
      return <Frame html={`<script>${text.replace(/<\/script/gi, '<\\/script')}</script>`} label="Script result" />
    case 'png':
    case 'jpeg':
      return (
        <img class="picture" src={`data:image/${name};base64,${text.replace(/\s/g, '')}`} alt="Result as a picture" />
      )
    case 'svg':
      return <img class="picture" src={svgUrl(text)} alt="Result as a drawing" />
    case 'latex':
      return <Latex source={text} block />
    case 'markdown':
      return <Markdown source={text} />
    case 'json':
    case 'data':
      return <JsonTree value={value} />
    case 'pdf':
      return (
        <Button small icon="download" onClick={() => save('result.pdf', new Blob([bytesOf(text)]))}>
          Download the PDF
        </Button>
      )
    default:
      return (
        <pre class="ansi">
          <Coloured text={text} />
        </pre>
      )
  }
}

function ResultView({ forms }: { forms: Forms }) {
  const names = shownForms(forms)
  const [chosen, setChosen] = useState('')
  const now = names.includes(chosen) ? chosen : names[0]
  if (!now) return null
  return (
    <div class="result">
      {names.length > 1 && (
        <div class="seg forms" role="group" aria-label="Form of the result">
          {names.map((n) => (
            <button key={n} type="button" aria-pressed={n === now} onClick={() => setChosen(n)}>
              {NAMES[n]}
            </button>
          ))}
        </div>
      )}
      <Form key={now} name={now} value={forms[now]} />
    </div>
  )
}

export function OutputView({ o }: { o: Output }) {
  if (o.kind === 'result') return <ResultView forms={o.forms} />
  if (o.kind === 'stream')
    return (
      <pre class={`ansi stream ${o.name}`}>
        <Coloured text={o.text} />
      </pre>
    )
  return (
    <div class="failure">
      <b>
        {o.name ? `${o.name}: ${o.value}` : /^\d+$/.test(o.value) ? `Exit status ${o.value}` : o.value}
      </b>
      {o.traceback && (
        <pre class="ansi">
          <Coloured text={o.traceback} />
        </pre>
      )}
    </div>
  )
}
