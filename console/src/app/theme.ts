// SPDX-License-Identifier: Apache-2.0
import { effect, signal } from '@preact/signals'

const STORE = 'cloche.theme'
const system = matchMedia('(prefers-color-scheme: dark)')

export const dark = signal(localStorage.getItem(STORE) ? localStorage.getItem(STORE) === 'dark' : system.matches)

system.addEventListener('change', (e) => {
  if (!localStorage.getItem(STORE)) dark.value = e.matches
})

export function toggleTheme() {
  dark.value = !dark.value
  localStorage.setItem(STORE, dark.value ? 'dark' : 'light')
}

effect(() => {
  document.documentElement.dataset.theme = dark.value ? 'dark' : 'light'
})
