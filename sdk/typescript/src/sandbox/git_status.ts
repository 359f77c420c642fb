// SPDX-License-Identifier: Apache-2.0
// What git tells of a repository, read from its porcelain formats.

export type GitStatusLabel =
  'conflict' | 'renamed' | 'copied' | 'deleted' | 'added' | 'modified' | 'typechange' | 'untracked' | 'unknown'

/** A file that differs from what is committed. */
export interface GitFileStatus {
  name: string
  status: GitStatusLabel
  /** Letter of the index. */
  indexStatus: string
  /** Letter of the working tree. */
  workingTreeStatus: string
  staged: boolean
  renamedFrom?: string
}

export interface GitStatus {
  currentBranch?: string
  upstream?: string
  ahead: number
  behind: number
  detached: boolean
  fileStatus: GitFileStatus[]
  isClean: boolean
  hasChanges: boolean
  hasStaged: boolean
  hasUntracked: boolean
  hasConflicts: boolean
  totalCount: number
  stagedCount: number
  unstagedCount: number
  untrackedCount: number
  conflictCount: number
}

export interface GitBranches {
  branches: string[]
  currentBranch?: string
}

const LABELS: Array<[string, GitStatusLabel]> = [
  ['U', 'conflict'],
  ['R', 'renamed'],
  ['C', 'copied'],
  ['D', 'deleted'],
  ['A', 'added'],
  ['M', 'modified'],
  ['T', 'typechange'],
  ['?', 'untracked'],
]

/** Reads `git status --porcelain=1 -b`. */
export function statusOf(output: string): GitStatus {
  const lines = output.split('\n').map((line) => line.replace(/\r$/, ''))
  const head = lines[0]?.startsWith('## ') ? lines.shift()!.slice(3) : ''
  const fileStatus = lines.filter((line) => line.length > 3).map(fileOf)
  const count = (test: (file: GitFileStatus) => boolean): number => fileStatus.filter(test).length
  const totalCount = fileStatus.length
  const stagedCount = count((file) => file.staged)
  const untrackedCount = count((file) => file.status === 'untracked')
  const conflictCount = count((file) => file.status === 'conflict')
  return {
    ...headOf(head),
    fileStatus,
    isClean: totalCount === 0,
    hasChanges: totalCount > 0,
    hasStaged: stagedCount > 0,
    hasUntracked: untrackedCount > 0,
    hasConflicts: conflictCount > 0,
    totalCount,
    stagedCount,
    unstagedCount: totalCount - stagedCount,
    untrackedCount,
    conflictCount,
  }
}

type Head = Pick<GitStatus, 'currentBranch' | 'upstream' | 'ahead' | 'behind' | 'detached'>

function headOf(line: string): Head {
  const [, names = '', counts = ''] = /^(.*?)(?: \[(.*)\])?$/.exec(line) ?? []
  const number = (word: string): number => Number(new RegExp(`${word} (\\d+)`).exec(counts)?.[1] ?? 0)
  const numbers = { ahead: number('ahead'), behind: number('behind') }
  if (/^HEAD \(|detached/.test(names))
    return { currentBranch: undefined, upstream: undefined, ...numbers, detached: true }
  const [branch, upstream] = names.replace(/^(No commits yet|Initial commit) on /, '').split('...')
  return { currentBranch: branch || undefined, upstream: upstream || undefined, ...numbers, detached: false }
}

function fileOf(line: string): GitFileStatus {
  const indexStatus = line[0]!
  const workingTreeStatus = line[1]!
  const path = line.slice(3)
  const arrow = path.indexOf(' -> ')
  const status = LABELS.find(([letter]) => letter === indexStatus || letter === workingTreeStatus)?.[1] ?? 'unknown'
  return {
    name: arrow < 0 ? path : path.slice(arrow + 4),
    status,
    indexStatus,
    workingTreeStatus,
    staged: indexStatus !== ' ' && indexStatus !== '?',
    ...(arrow < 0 ? {} : { renamedFrom: path.slice(0, arrow) }),
  }
}

/** Reads `git branch` with a tab before the mark of the current one. */
export function branchesOf(output: string): GitBranches {
  const rows = output
    .split('\n')
    .filter((line) => line.trim())
    .map((line) => line.trim().split('\t'))
  return { branches: rows.map(([name]) => name!), currentBranch: rows.find(([, mark]) => mark === '*')?.[0] }
}
