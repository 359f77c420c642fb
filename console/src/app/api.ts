// SPDX-License-Identifier: Apache-2.0
// Calls of the REST API, same origin. Errors carry what the server said; a refused key ends the session; whether the
// server answers at all is `online`, which the shell shows.
import { signal } from '@preact/signals'
import { end, session, type Session } from './session'

export const online = signal(true)

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code?: string,
  ) {
    super(message)
  }
}

export interface CallOptions {
  body?: unknown
  signal?: AbortSignal
  admin?: boolean // X-Admin-Token goes along
  key?: string // instead of the session's
  token?: string // of a volume, instead of a key
  raw?: Blob // a body as it is
  headers?: Record<string, string>
}

function headersOf(o: CallOptions): Record<string, string> {
  const h: Record<string, string> = { ...o.headers }
  const key = o.key ?? session.value?.key
  if (o.token) h['Authorization'] = `Bearer ${o.token}`
  else if (key) h['X-API-Key'] = key
  if (o.admin && session.value?.adminToken) h['X-Admin-Token'] = session.value.adminToken
  if (o.body !== undefined) h['Content-Type'] = 'application/json'
  return h
}

/** A path that names one thing of the API: what is below /box/ is a box, which must not see the key. */
export function isApiPath(path: string): boolean {
  const url = new URL(path, location.origin)
  return url.origin === location.origin && url.pathname === path.split('?')[0] && !/^\/+box\//.test(url.pathname)
}

async function errorOf(r: Response): Promise<ApiError> {
  const text = await r.text().catch(() => '')
  try {
    const j = JSON.parse(text) as { message?: string; error_code?: string }
    return new ApiError(r.status, j.message ?? text, j.error_code)
  } catch {
    return new ApiError(r.status, text.slice(0, 300) || `the server answered ${r.status}`)
  }
}

/** The answer as it is; an ApiError when its status is not 2xx, status 0 when the server can't be reached. */
export async function call(method: string, path: string, o: CallOptions = {}): Promise<Response> {
  if (!isApiPath(path)) throw new ApiError(0, `${path} is no path of the API`)
  let r: Response
  try {
    r = await fetch(path, {
      method,
      headers: headersOf(o),
      body: o.raw ?? (o.body === undefined ? undefined : JSON.stringify(o.body)),
      signal: o.signal,
      credentials: 'omit',
      cache: 'no-store',
    })
  } catch (e) {
    if (o.signal?.aborted) throw e
    online.value = false
    throw new ApiError(0, 'the server can’t be reached')
  }
  online.value = true
  if (r.ok) return r
  const error = await errorOf(r)
  if (r.status === 401 && !o.key && !o.token && !o.admin && session.value)
    end('The key is no longer accepted: it was deleted or is over. Sign in again.')
  throw error
}

export async function json<T>(method: string, path: string, o: CallOptions = {}): Promise<T> {
  const r = await call(method, path, o)
  const text = await r.text()
  return (text ? JSON.parse(text) : undefined) as T
}

export const get = <T>(path: string, o?: CallOptions) => json<T>('GET', path, o)
export const post = <T>(path: string, body: unknown = {}, o?: CallOptions) => json<T>('POST', path, { ...o, body })
export const del = (path: string, o?: CallOptions) => json<void>('DELETE', path, o)
export const patch = <T>(path: string, body: unknown, o?: CallOptions) => json<T>('PATCH', path, { ...o, body })

/** One page after another of a listing that has X-Next-Token. */
export async function pages<T>(path: string, most = 500, o: CallOptions = {}): Promise<T[]> {
  const out: T[] = []
  let token = ''
  do {
    const join = path.includes('?') ? '&' : '?'
    const r = await call('GET', token ? `${path}${join}nextToken=${encodeURIComponent(token)}` : path, o)
    out.push(...((await r.json()) as T[]))
    token = r.headers.get('X-Next-Token') ?? ''
  } while (token && out.length < most)
  return out
}

interface TeamRow {
  teamID: string
  name: string
}

/** Checks a key and says whose it is. */
export async function sessionOfKey(key: string): Promise<Session> {
  const teams = await get<TeamRow[]>('/teams', { key })
  return { key, teamID: teams[0]!.teamID, teamName: teams[0]!.name }
}

export async function sessionOfCode(code: string): Promise<Session> {
  return post<Session>('/console/session', {}, { headers: { 'X-Console-Code': code } })
}

/** A key that was made for this session goes with it. */
export async function signOut() {
  const s = session.value
  if (s?.keyID) await del(`/api-keys/${s.keyID}`).catch(() => undefined)
  end()
}
