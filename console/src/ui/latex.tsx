// SPDX-License-Identifier: Apache-2.0
// Formulas by KaTeX, which is loaded when the first one is shown. It builds elements; commands that would make links,
// classes or pictures of the author's choice are off.
import { useEffect, useRef, useState } from 'preact/hooks'

export function Latex({ source, block }: { source: string; block?: boolean }) {
  const ref = useRef<HTMLSpanElement>(null)
  const [failed, setFailed] = useState(false)
  const bare = source.trim().replace(/^\${1,2}([\s\S]*?)\${1,2}$/, '$1')
  useEffect(() => {
    let over = false
    Promise.all([import('katex'), import('katex/dist/katex.min.css')])
      .then(([k]) => {
        if (!over && ref.current)
          k.default.render(bare, ref.current, {
            displayMode: block === true,
            throwOnError: true,
            trust: false,
            strict: 'ignore',
            maxExpand: 500,
            maxSize: 20,
            output: 'htmlAndMathml',
          })
      })
      .catch(() => !over && setFailed(true))
    return () => {
      over = true
    }
  }, [bare, block])
  if (failed) return <code>{source}</code>
  return (
    <span class={block ? 'latex block' : 'latex'} ref={ref}>
      {bare}
    </span>
  )
}
