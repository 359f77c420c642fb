// SPDX-License-Identifier: Apache-2.0
// Addresses below /console/. `#` is never used: it is where sign-in codes come in.
import { computed, signal } from '@preact/signals'

const BASE = '/console'
const at = signal(location.pathname + location.search)

addEventListener('popstate', () => (at.value = location.pathname + location.search))

/** The path behind /console, "/" for the start. */
export const path = computed(() => {
  const p = at.value.split('?')[0]!
  return p.startsWith(BASE) ? p.slice(BASE.length) || '/' : '/'
})
export const query = computed(() => new URLSearchParams(at.value.split('?')[1] ?? ''))

export function href(to: string): string {
  return BASE + to
}

export function go(to: string, replace = false) {
  history[replace ? 'replaceState' : 'pushState'](null, '', BASE + to)
  at.value = BASE + to
  window.scrollTo(0, 0)
}

/** Of a click on a link: whether the browser should do what it does with links. */
export function isPlainClick(e: MouseEvent): boolean {
  return e.button === 0 && !e.metaKey && !e.ctrlKey && !e.shiftKey && !e.altKey
}
