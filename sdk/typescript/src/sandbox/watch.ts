// SPDX-License-Identifier: Apache-2.0
// A watch on a directory.

import { asyncDispose } from '../dispose.js'
import type { AgentStream } from '../net/agent.js'
import { type EntryInfo, infoOf, type RawEntry } from './entry.js'

/** Kind of a change. */
export enum FilesystemEventType {
  CHMOD = 'chmod',
  CREATE = 'create',
  REMOVE = 'remove',
  RENAME = 'rename',
  WRITE = 'write',
}

/** A change in a watched directory. */
export interface FilesystemEvent {
  /** Path relative to the watched directory. */
  name: string
  type: FilesystemEventType
  /** What is there now, with `includeEntry`. */
  entry?: EntryInfo
}

const TYPES: Record<string, FilesystemEventType> = {
  EVENT_TYPE_CHMOD: FilesystemEventType.CHMOD,
  EVENT_TYPE_CREATE: FilesystemEventType.CREATE,
  EVENT_TYPE_REMOVE: FilesystemEventType.REMOVE,
  EVENT_TYPE_RENAME: FilesystemEventType.RENAME,
  EVENT_TYPE_WRITE: FilesystemEventType.WRITE,
}

type OnEvent = ((event: FilesystemEvent) => void | Promise<void>) | undefined
type OnExit = ((error?: Error) => void | Promise<void>) | undefined

/** A watch that goes on until stop(). With a callback a pump reads it; without one, whoever iterates does. */
export class WatchHandle {
  readonly #stream: AgentStream
  #stopped = false

  constructor(stream: AgentStream, onEvent?: OnEvent, onExit?: OnExit) {
    this.#stream = stream
    if (onEvent) void this.#pump(onEvent, onExit)
  }

  /** Ends the watch. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#stream.close()
  }

  async [asyncDispose](): Promise<void> {
    await this.stop()
  }

  /** Changes as they happen; only for watches without a callback. Leaving the loop ends the watch. */
  async *[Symbol.asyncIterator](): AsyncGenerator<FilesystemEvent, void, undefined> {
    try {
      for (;;) {
        const message = await this.#stream.next()
        if (!message) return
        const event = eventOf(message['filesystem'])
        if (event) yield event
      }
    } catch (error) {
      if (!this.#stopped) throw error
    } finally {
      await this.stop()
    }
  }

  async #pump(onEvent: NonNullable<OnEvent>, onExit: OnExit): Promise<void> {
    let failure: Error | undefined
    try {
      for await (const event of this) await onEvent(event)
    } catch (error) {
      failure = error as Error
    }
    try {
      await (failure ? onExit?.(failure) : onExit?.())
    } catch {
      // What a callback does when the watch is over concerns nobody here.
    }
  }
}

function eventOf(raw: { name?: string; type?: string; entry?: RawEntry } | undefined): FilesystemEvent | undefined {
  const type = TYPES[raw?.type ?? '']
  if (!type) return undefined
  return { name: raw!.name ?? '', type, entry: raw!.entry ? infoOf(raw!.entry) : undefined }
}
