// SPDX-License-Identifier: Apache-2.0
// Files in a sandbox. What reads and writes them is loaded with the first call (files_calls.ts).

import type { ConnectionOpts, Username } from '../config.js'
import type { Agent } from '../net/agent.js'
import type { WriteData } from '../net/transfer.js'
import type { EntryInfo, FileType } from './entry.js'
import type { FileCalls } from './files_calls.js'
import type { FilesystemEvent, WatchHandle } from './watch.js'

/** What is told of a file that was written. */
export interface WriteInfo {
  name: string
  type?: FileType
  path: string
  metadata?: Record<string, string>
}

export type WriteEntry = {
  path: string
  data: WriteData
}

/** Options of every call about files. */
export interface FilesystemRequestOpts extends Partial<Pick<ConnectionOpts, 'requestTimeoutMs' | 'signal'>> {
  /** Whose home relative paths start from, and who owns what is made. */
  user?: Username
}

export interface FilesystemWriteOpts extends FilesystemRequestOpts {
  /** Compress on the way. */
  gzip?: boolean
  /** Without effect: files always travel as they are, one request for each. */
  useOctetStream?: boolean
  /** Kept with the file and told back by getInfo(), list() and read-outs of writes. */
  metadata?: Record<string, string>
}

export interface FilesystemReadOpts extends FilesystemRequestOpts {
  /** Compress on the way. */
  gzip?: boolean
  /** Longest silence in ms of a stream that is being read; `requestTimeoutMs` when left out. */
  streamIdleTimeoutMs?: number
}

export interface FilesystemListOpts extends FilesystemRequestOpts {
  /** How many levels to list, 1 when left out. */
  depth?: number
}

export interface WatchOpts extends FilesystemRequestOpts {
  /** The watch ends after this many ms; 60000 when left out, 0: never. */
  timeoutMs?: number
  onExit?: (err?: Error) => void | Promise<void>
  recursive?: boolean
  /** Tell what the entry is with each event. */
  includeEntry?: boolean
  allowNetworkMounts?: boolean
}

/** Reads, writes, lists and watches files. */
export class Filesystem {
  readonly #agent: Agent

  constructor(agent: Agent) {
    this.#agent = agent
  }

  /** Reads a file, as text unless `format` says otherwise. `requestTimeoutMs` is the longest silence. */
  async read(path: string, opts?: FilesystemReadOpts & { format?: 'text' }): Promise<string>
  async read(path: string, opts?: FilesystemReadOpts & { format: 'bytes' }): Promise<Uint8Array>
  async read(path: string, opts?: FilesystemReadOpts & { format: 'blob' }): Promise<Blob>
  async read(path: string, opts?: FilesystemReadOpts & { format: 'stream' }): Promise<ReadableStream<Uint8Array>>
  async read(path: string, opts?: FilesystemReadOpts & { format?: string }): Promise<unknown> {
    return (await this.#calls()).read(path, opts)
  }

  /** Writes a file, or several. Missing directories are made. `requestTimeoutMs` is the longest silence. */
  async write(path: string, data: WriteData, opts?: FilesystemWriteOpts): Promise<WriteInfo>
  async write(files: WriteEntry[], opts?: FilesystemWriteOpts): Promise<WriteInfo[]>
  async write(
    pathOrFiles: string | WriteEntry[],
    dataOrOpts?: WriteData | FilesystemWriteOpts,
    opts?: FilesystemWriteOpts,
  ): Promise<WriteInfo | WriteInfo[]> {
    return (await this.#calls()).write(pathOrFiles, dataOrOpts, opts)
  }

  /** Writes several files; the answers are in the order of `files`. */
  async writeFiles(files: WriteEntry[], opts?: FilesystemWriteOpts): Promise<WriteInfo[]> {
    return (await this.#calls()).writeFiles(files, opts)
  }

  /** Entries of a directory, and of those below it down to `depth`. */
  async list(path: string, opts?: FilesystemListOpts): Promise<EntryInfo[]> {
    return (await this.#calls()).list(path, opts)
  }

  /** Makes a directory and those above it; false when it is there already. */
  async makeDir(path: string, opts?: FilesystemRequestOpts): Promise<boolean> {
    return (await this.#calls()).makeDir(path, opts)
  }

  /** Moves a file or directory. */
  async rename(oldPath: string, newPath: string, opts?: FilesystemRequestOpts): Promise<EntryInfo> {
    return (await this.#calls()).rename(oldPath, newPath, opts)
  }

  /** Removes a file, or a directory with all in it. */
  async remove(path: string, opts?: FilesystemRequestOpts): Promise<void> {
    return (await this.#calls()).remove(path, opts)
  }

  /** Whether there is something at this path. */
  async exists(path: string, opts?: FilesystemRequestOpts): Promise<boolean> {
    return (await this.#calls()).exists(path, opts)
  }

  /** What is at this path. */
  async getInfo(path: string, opts?: FilesystemRequestOpts): Promise<EntryInfo> {
    return (await this.#calls()).getInfo(path, opts)
  }

  /** Tells every change in a directory until stop() or `timeoutMs`; the handle can be iterated over too. */
  async watchDir(
    path: string,
    onEvent?: (event: FilesystemEvent) => void | Promise<void>,
    opts?: WatchOpts,
  ): Promise<WatchHandle> {
    return (await this.#calls()).watchDir(path, onEvent, opts)
  }

  async #calls(): Promise<FileCalls> {
    return new (await import('./files_calls.js')).FileCalls(this.#agent)
  }
}
