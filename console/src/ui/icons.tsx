// SPDX-License-Identifier: Apache-2.0
// Line icons on a grid of 16, drawn here.
const paths = {
  box: 'M2.5 5.2 8 2.2l5.5 3v5.6L8 13.8l-5.5-3zM2.5 5.2 8 8.2l5.5-3M8 8.2v5.6',
  layers: 'M8 2 14 5.2 8 8.4 2 5.2zM2.6 8 8 10.9 13.4 8M2.6 10.8 8 13.7l5.4-2.9',
  disk: 'M2.5 4.2C2.5 2.9 5 2 8 2s5.5.9 5.5 2.2v7.6C13.5 13.1 11 14 8 14s-5.5-.9-5.5-2.2zM2.5 4.2c0 1.3 2.5 2.2 5.5 2.2s5.5-.9 5.5-2.2M2.5 8c0 1.3 2.5 2.2 5.5 2.2s5.5-.9 5.5-2.2',
  lock: 'M3.5 7h9v6.5h-9zM5.3 7V5a2.7 2.7 0 0 1 5.4 0v2',
  key: 'M10.2 9.3a3.5 3.5 0 1 0-3.5-3.5c0 .4 0 .7.2 1L2.5 11v2.5H5V12h1.5v-1.5h1.4l.9-1.4c.4.1.9.2 1.4.2zM11 5h.01',
  people:
    'M6 7.5a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6zM1.8 13c0-2.3 1.9-3.8 4.2-3.8s4.2 1.5 4.2 3.8M10.8 7.3a2 2 0 1 0-.6-3.9M11.6 9.4c1.6.3 2.7 1.6 2.7 3.4',
  hook: 'M5 12.5a2.5 2.5 0 1 1 1-4.8L8 4.5a2.4 2.4 0 1 1 2.5 1M6 12.3h4.3a2.3 2.3 0 1 0 .3-2.6',
  list: 'M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01',
  node: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01',
  gauge: 'M2.3 11.5a6 6 0 1 1 11.4 0M8 10.5l2.7-3.6',
  plus: 'M8 3v10M3 8h10',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.4 10.4 13.5 13.5',
  play: 'M5 3.2 12.5 8 5 12.8z',
  pause: 'M5.2 3.5v9M10.8 3.5v9',
  stop: 'M4 4h8v8H4z',
  fork: 'M4.5 5.5v5M4.5 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM4.5 13.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM11.5 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM11.5 5.5c0 3-7 1.5-7 5',
  camera: 'M2 5h2.7l1-1.7h4.6l1 1.7H14v8H2zM8 11a2.2 2.2 0 1 0 0-4.4A2.2 2.2 0 0 0 8 11z',
  clock: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8V8l2.2 1.6',
  trash: 'M2.8 4.2h10.4M6.3 4V2.5h3.4V4M4 4.4l.6 9.1h6.8l.6-9.1M6.7 7v4M9.3 7v4',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.2V2.5h-8v8h2.7',
  check: 'M3 8.5 6.3 12 13 4.5',
  close: 'M3.8 3.8l8.4 8.4M12.2 3.8l-8.4 8.4',
  sun: 'M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M3.4 12.6l1.1-1.1M11.5 4.5l1.1-1.1',
  moon: 'M13.3 9.6A5.8 5.8 0 0 1 6.4 2.7a5.8 5.8 0 1 0 6.9 6.9z',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  down: 'M4 6.2 8 10l4-3.8',
  right: 'M6.2 4 10 8l-3.8 4',
  up: 'M4 9.8 8 6l4 3.8',
  file: 'M4 2h5l3.5 3.5V14H4zM9 2v3.5h3.5',
  folder: 'M2 4h4.2l1.3 1.6H14V13H2z',
  link: 'M6.8 9.2a2.6 2.6 0 0 0 3.8.2l2-2a2.6 2.6 0 0 0-3.7-3.7l-1 1M9.2 6.8a2.6 2.6 0 0 0-3.8-.2l-2 2a2.6 2.6 0 0 0 3.7 3.7l1-1',
  upload: 'M8 10.5V2.8M4.8 5.8 8 2.6l3.2 3.2M2.5 10.5v3h11v-3',
  download: 'M8 2.5v7.7M4.8 7.2 8 10.4l3.2-3.2M2.5 10.5v3h11v-3',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.5M13 2.5v3h-3',
  terminal: 'M2.5 3h11v10h-11zM5 6.2 7 8l-2 1.8M8.3 10.3h2.7',
  out: 'M9.5 2.5H13v11H9.5M6.5 5 3.5 8l3 3M3.7 8h6',
  edit: 'M10.5 3 13 5.5 5.5 13H3v-2.5z',
  warn: 'M8 2.5 14.2 13.3H1.8zM8 6.5v3.2M8 11.5h.01',
} as const

export type IconName = keyof typeof paths

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  )
}

export function Logo({ size = 22 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" class="logo">
      <path d="M6 24v-7a10 10 0 0 1 20 0v7" class="glass" />
      <circle cx="16" cy="4.6" r="2.1" class="knob" />
      <path d="M3 25.5h26" class="base" />
    </svg>
  )
}
