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
  {
    path: '/templates',
    title: 'Templates',
    load: () => import('./templates'),
    nav: { icon: 'layers', keys: 'g t', group: 'Work' },
  },
  { path: '/templates/:id/:build?', title: 'Template', load: () => import('./template') },
  {
    path: '/volumes',
    title: 'Volumes',
    load: () => import('./volumes'),
    nav: { icon: 'disk', keys: 'g v', group: 'Work' },
  },
  { path: '/volumes/:id', title: 'Volume', load: () => import('./volume') },
  {
    path: '/events',
    title: 'Events',
    load: () => import('./events'),
    nav: { icon: 'list', keys: 'g e', group: 'Work' },
  },
  {
    path: '/team',
    title: 'Team',
    load: () => import('./team'),
    nav: { icon: 'people', keys: 'g a', group: 'Team' },
  },
  {
    path: '/keys',
    title: 'API keys',
    load: () => import('./keys'),
    nav: { icon: 'key', keys: 'g k', group: 'Team' },
  },
  {
    path: '/secrets',
    title: 'Secrets',
    load: () => import('./secrets'),
    nav: { icon: 'lock', keys: 'g x', group: 'Team' },
  },
  {
    path: '/webhooks',
    title: 'Webhooks',
    load: () => import('./webhooks'),
    nav: { icon: 'hook', keys: 'g w', group: 'Team' },
  },
  { path: '/webhooks/:id', title: 'Webhook', load: () => import('./webhook') },
  {
    path: '/machine',
    title: 'Machine',
    load: () => import('./machine'),
    nav: { icon: 'gauge', keys: 'g m', group: 'Server' },
  },
]
