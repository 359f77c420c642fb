// SPDX-License-Identifier: Apache-2.0
// HTML that a box made, in a document without an origin: frame.html has a policy of its own that lets scripts run and
// reach nothing. All that comes back is a height.
import { useEffect, useRef, useState } from 'preact/hooks'
import { dark } from '../app/theme'

const MOST = 1600

export function Frame({ html, label }: { html: string; label: string }) {
  const ref = useRef<HTMLIFrameElement>(null)
  const [ready, setReady] = useState(false)
  const isDark = dark.value
  useEffect(() => {
    const hear = (e: MessageEvent) => {
      const frame = ref.current
      if (!frame || e.source !== frame.contentWindow) return
      const said = e.data as { ready?: unknown; height?: unknown } | null
      if (said?.ready === true) setReady(true)
      else if (typeof said?.height === 'number' && Number.isFinite(said.height))
        frame.style.height = `${Math.min(Math.max(said.height, 24), MOST)}px`
    }
    addEventListener('message', hear)
    return () => removeEventListener('message', hear)
  }, [])
  useEffect(() => {
    if (ready) ref.current?.contentWindow?.postMessage({ html, dark: isDark }, '*')
  }, [ready, html, isDark])
  return <iframe ref={ref} class="result-frame" src="/console/frame.html" sandbox="allow-scripts" title={label} />
}
