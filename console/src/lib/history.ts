// SPDX-License-Identifier: Apache-2.0
// The last few measurements of each sandbox, for small lines in lists.
import type { Metric } from './types'

const KEPT = 30

export class History {
  private readonly by = new Map<string, Metric[]>()

  add(id: string, m: Metric) {
    const list = this.by.get(id) ?? []
    if (list.length && list[list.length - 1]!.timestamp >= m.timestamp) return
    list.push(m)
    if (list.length > KEPT) list.shift()
    this.by.set(id, list)
  }

  of(id: string): Metric[] {
    return this.by.get(id) ?? []
  }

  keep(ids: Set<string>) {
    for (const id of this.by.keys()) if (!ids.has(id)) this.by.delete(id)
  }
}
