// SPDX-License-Identifier: Apache-2.0
/** The directory above a path; "/" is its own. */
export function parent(path: string): string {
  const cut = path.replace(/\/+$/, '').lastIndexOf('/')
  return cut <= 0 ? '/' : path.slice(0, cut)
}

export function inside(dir: string, name: string): string {
  return dir === '/' ? `/${name}` : `${dir}/${name}`
}

/** "/a/b" as the steps that lead there. */
export function steps(path: string): { name: string; path: string }[] {
  const out = [{ name: '/', path: '/' }]
  let at = ''
  for (const part of path.split('/').filter(Boolean)) {
    at += `/${part}`
    out.push({ name: part, path: at })
  }
  return out
}

const PICTURES: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  svg: 'image/svg+xml',
  bmp: 'image/bmp',
  ico: 'image/x-icon',
}

export function pictureType(name: string): string | undefined {
  return PICTURES[name.split('.').pop()?.toLowerCase() ?? '']
}

/** Text, unless it has bytes that no text has. */
export function looksLikeText(bytes: Uint8Array): boolean {
  const head = bytes.subarray(0, 8192)
  if (head.includes(0)) return false
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(head.length < bytes.length ? head.subarray(0, -4) : head)
    return true
  } catch {
    return false
  }
}
