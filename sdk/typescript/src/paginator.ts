// SPDX-License-Identifier: Apache-2.0
// Listings that come in pages.

import type { ConnectionOpts } from './config.js'

/** A page as it came, with the headers that say where the next one begins. */
export interface Page<T> {
  items: T[]
  headers: Headers
}

/** Pages of a listing: nextItems() while `hasNext`, or `for await` over all items. */
export abstract class Paginator<T, O extends ConnectionOpts = ConnectionOpts> {
  protected readonly opts?: O
  protected readonly limit?: number
  #more = true
  #token?: string

  constructor(opts?: O, limit?: number, nextToken?: string) {
    this.opts = opts
    this.limit = limit
    this.#token = nextToken
  }

  /** Whether there is another page. */
  get hasNext(): boolean {
    return this.#more
  }

  /** What to pass as `nextToken` to go on from here in another listing. */
  get nextToken(): string | undefined {
    return this.#token
  }

  /** The items of the next page. */
  abstract nextItems(opts?: O): Promise<T[]>

  /** All items, page after page. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    while (this.hasNext) yield* await this.nextItems()
  }

  protected updatePagination(response: { headers: Headers }): void {
    this.#token = response.headers.get('X-Next-Token') || undefined
    this.#more = this.#token !== undefined
  }

  /** Moves on to the page after this one and hands out its items. */
  protected took(page: Page<T>): T[] {
    this.updatePagination(page)
    return page.items
  }

  protected needNext(): void {
    if (!this.#more) throw new Error('No more items to fetch')
  }
}
