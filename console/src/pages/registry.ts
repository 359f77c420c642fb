// SPDX-License-Identifier: Apache-2.0
// All pages. A page is a file of its own, loaded when it is first opened; its default export is a component that gets
// the path's parameters. A new page is a row here.
import type { ComponentType } from 'preact'
import type { Params } from '../lib/match'
import type { IconName } from '../ui/icons'

export interface Page {
  path: string // "/sandboxes/:id/:tab?"
  title: string
  load: () => Promise<{ default: ComponentType<{ params: Params }> }>
  nav?: { icon: IconName; keys: string; group: 'Work' | 'Team' | 'Server' }
}

export const pages: Page[] = [
  {
    path: '/sandboxes',
    title: 'Sandboxes',
    load: () => import('./sandboxes'),
    nav: { icon: 'box', keys: 'g s', group: 'Work' },
  },
  { path: '/sandboxes/:id/:tab?', title: 'Sandbox', load: () => import('./sandbox/page') },
]
