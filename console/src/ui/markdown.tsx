// SPDX-License-Identifier: Apache-2.0
// Markdown as elements of this page. The parser only gives tokens; HTML in it is shown as text, links lead out in a new
// tab and only to http, https and mail, pictures only from data: URLs.
import { marked, type Token, type Tokens } from 'marked'
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { Latex } from './latex'

const SAFE = /^(https?:|mailto:)/i
const PICTURE = /^data:image\/(png|jpeg|gif|webp);base64,/

const decode = (text: string) =>
  text.replace(
    /&(amp|lt|gt|quot|#39);/g,
    (_, n: string) => ({ amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" })[n] ?? '',
  )

function Text({ text }: { text: string }) {
  const parts = decode(text).split(/(\$\$[^$]+\$\$|\$[^$\n]+\$)/)
  return (
    <>
      {parts.map((p, i) =>
        i % 2 ? <Latex key={i} source={p.replace(/^\$+|\$+$/g, '')} block={p.startsWith('$$')} /> : p,
      )}
    </>
  )
}

function many(tokens: Token[] | undefined): ComponentChildren {
  return tokens?.map((t, i) => <One key={i} t={t} />)
}

function Table({ t }: { t: Tokens.Table }) {
  return (
    <table>
      <thead>
        <tr>
          {t.header.map((c, i) => (
            <th key={i}>{many(c.tokens)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {t.rows.map((r, i) => (
          <tr key={i}>
            {r.map((c, k) => (
              <td key={k}>{many(c.tokens)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function List({ t }: { t: Tokens.List }) {
  const items = t.items.map((item, i) => <li key={i}>{many(item.tokens)}</li>)
  return t.ordered ? <ol start={Number(t.start) || 1}>{items}</ol> : <ul>{items}</ul>
}

function LinkTo({ t }: { t: Tokens.Link }) {
  if (!SAFE.test(t.href)) return <span>{many(t.tokens)}</span>
  return (
    <a href={t.href} target="_blank" rel="noopener noreferrer">
      {many(t.tokens)}
    </a>
  )
}

function One({ t }: { t: Token }): ComponentChildren {
  switch (t.type) {
    case 'space':
    case 'def':
      return null
    case 'heading': {
      const H = `h${Math.min(Math.max((t as Tokens.Heading).depth + 1, 2), 6)}` as 'h2'
      return <H>{many(t.tokens)}</H>
    }
    case 'paragraph':
      return <p>{many(t.tokens)}</p>
    case 'blockquote':
      return <blockquote>{many(t.tokens)}</blockquote>
    case 'list':
      return <List t={t as Tokens.List} />
    case 'table':
      return <Table t={t as Tokens.Table} />
    case 'code':
      return (
        <pre class="md-code">
          <code>{(t as Tokens.Code).text}</code>
        </pre>
      )
    case 'codespan':
      return <code>{decode((t as Tokens.Codespan).text)}</code>
    case 'strong':
      return <strong>{many(t.tokens)}</strong>
    case 'em':
      return <em>{many(t.tokens)}</em>
    case 'del':
      return <del>{many(t.tokens)}</del>
    case 'br':
      return <br />
    case 'hr':
      return <hr />
    case 'link':
      return <LinkTo t={t as Tokens.Link} />
    case 'image': {
      const { href, text } = t as Tokens.Image
      return PICTURE.test(href) ? <img src={href} alt={text} /> : <span class="soft">[picture: {text || href}]</span>
    }
    case 'text':
      return t.tokens ? <>{many(t.tokens)}</> : <Text text={(t as Tokens.Text).text} />
    case 'checkbox':
      return <input type="checkbox" disabled checked={(t as Tokens.Checkbox).checked} aria-label="done" />
    default:
      return <Text text={t.raw} />
  }
}

export function Markdown({ source }: { source: string }) {
  const tokens = useMemo(() => marked.lexer(source.slice(0, 300_000)), [source])
  return <div class="markdown">{many(tokens)}</div>
}
