// SPDX-License-Identifier: Apache-2.0
// A value that is asked for again and again while it is shown. Rests while the tab is hidden, waits longer while the
// server does not answer, and keeps the last value meanwhile.
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from './api'

export interface Polled<T> {
  data: T | undefined
  error: Error | undefined
  refresh: () => void
}

export function usePoll<T>(ask: (signal: AbortSignal) => Promise<T>, everyMs: number, deps: unknown[]): Polled<T> {
  const [data, setData] = useState<T>()
  const [error, setError] = useState<Error>()
  const again = useRef<() => void>(() => undefined)
  useEffect(() => {
    let stopped = false
    let timer = 0
    let asking: AbortController | undefined
    setData(undefined)
    setError(undefined)
    const plan = (ms: number) => {
      clearTimeout(timer)
      timer = window.setTimeout(run, ms)
    }
    const run = async () => {
      asking?.abort()
      const mine = (asking = new AbortController())
      let wait = everyMs
      try {
        const value = await ask(mine.signal)
        if (stopped || mine.signal.aborted) return
        setData(value)
        setError(undefined)
      } catch (e) {
        if (stopped || mine.signal.aborted) return
        setError(e as Error)
        if (e instanceof ApiError && e.status === 0) wait = Math.min(Math.max(everyMs, 1000), 2000)
      }
      if (everyMs > 0) plan(document.hidden ? Math.max(wait, 15000) : wait)
    }
    const seen = () => !document.hidden && everyMs > 0 && plan(0)
    again.current = () => plan(0)
    document.addEventListener('visibilitychange', seen)
    void run()
    return () => {
      stopped = true
      asking?.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', seen)
    }
  }, deps)
  return { data, error, refresh: () => again.current() }
}
