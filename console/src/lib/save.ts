// SPDX-License-Identifier: Apache-2.0
/** Lets the browser keep bytes as a file. They are a download, whatever their name says: never a page. */
export function save(name: string, data: Blob | string) {
  const blob = new Blob([data], { type: 'application/octet-stream' })
  const url = URL.createObjectURL(blob)
  const a = document.createElement('a')
  a.href = url
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(url), 30_000)
}
