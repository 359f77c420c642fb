// SPDX-License-Identifier: Apache-2.0
// Who is signed in. The key lives in memory; only when a person asks for it also in the browser's storage. A key never
// comes from or goes into a URL: the one-time code of a sign-in link does, in the fragment, and is taken out of the
// address bar before anything else happens.
import { signal } from '@preact/signals'

export interface Session {
  key: string
  teamID: string
  teamName: string
  keyID?: string // of a key that was made for this session: it is deleted when the session ends
  expiresAt?: string
  adminToken?: string
}

const STORE = 'cloche.session'

export const session = signal<Session | null>(null)
export const signInNote = signal('')

export function remembered(): boolean {
  return localStorage.getItem(STORE) !== null
}

export function remember(keep: boolean) {
  if (keep && session.value) localStorage.setItem(STORE, JSON.stringify({ ...session.value, adminToken: undefined }))
  else localStorage.removeItem(STORE)
}

export function begin(s: Session, keep: boolean) {
  session.value = s
  signInNote.value = ''
  remember(keep)
}

/** The administrator's token stays in memory, whatever is kept of the session. */
export function setAdminToken(token: string | undefined) {
  if (session.value) session.value = { ...session.value, adminToken: token }
}

export function end(note = '') {
  session.value = null
  signInNote.value = note
  localStorage.removeItem(STORE)
}

function isSession(v: unknown): v is Session {
  const s = v as Session
  return typeof s === 'object' && s !== null && typeof s.key === 'string' && typeof s.teamID === 'string'
}

export function restore() {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(STORE) ?? 'null')
    if (isSession(kept) && (!kept.expiresAt || Date.parse(kept.expiresAt) > Date.now())) session.value = kept
    else localStorage.removeItem(STORE)
  } catch {
    localStorage.removeItem(STORE)
  }
}

/** Takes the code of a sign-in link out of the address bar and the history. */
export function takeLoginCode(): string | null {
  const match = /^#login=([0-9a-f]{1,128})$/.exec(location.hash)
  if (location.hash.startsWith('#login=')) history.replaceState(null, '', location.pathname)
  return match ? match[1]! : null
}
