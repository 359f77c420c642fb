// SPDX-License-Identifier: Apache-2.0
// Files and directories as the agent describes them.

/** Kind of an entry. */
export enum FileType {
  FILE = 'file',
  DIR = 'dir',
  SYMLINK = 'symlink',
}

/** A file, directory or link. */
export interface EntryInfo {
  name: string
  type?: FileType
  path: string
  metadata?: Record<string, string>
  size: number
  /** Permission bits. */
  mode: number
  /** As `ls -l` writes them. */
  permissions: string
  owner: string
  group: string
  modifiedTime?: Date
  /** What a link leads to, fully resolved. */
  symlinkTarget?: string
  /** True for links; `type` is then that of what they lead to. */
  isSymlink?: boolean
}

/** An entry on the wire: JSON of a protobuf message, where defaults are left out. */
export type RawEntry = Partial<Omit<EntryInfo, 'type' | 'size' | 'modifiedTime'>> & {
  type?: string
  size?: string | number
  modifiedTime?: string
}

const KINDS: Record<string, FileType> = {
  FILE_TYPE_FILE: FileType.FILE,
  FILE_TYPE_DIRECTORY: FileType.DIR,
  FILE_TYPE_SYMLINK: FileType.SYMLINK,
}

/** Kind of a wire name; undefined for sockets, devices and broken links. */
export function kindOf(name: string | undefined): FileType | undefined {
  return KINDS[name ?? '']
}

/** An entry as callers see it. */
export function infoOf(raw: RawEntry): EntryInfo {
  const { metadata, modifiedTime, isSymlink } = raw
  return {
    name: raw.name ?? '',
    type: kindOf(raw.type),
    path: raw.path ?? '',
    size: Number(raw.size ?? 0),
    mode: raw.mode ?? 0,
    permissions: raw.permissions ?? '',
    owner: raw.owner ?? '',
    group: raw.group ?? '',
    modifiedTime: modifiedTime ? new Date(modifiedTime) : undefined,
    symlinkTarget: raw.symlinkTarget,
    metadata: metadata && Object.keys(metadata).length ? metadata : undefined,
    ...(isSymlink ? { isSymlink } : {}),
  }
}
