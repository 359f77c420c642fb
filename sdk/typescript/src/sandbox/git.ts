// SPDX-License-Identifier: Apache-2.0
// Git in a sandbox. What makes the commands is loaded with the first of them (git_commands.ts).

import type { Commands, CommandStartOpts } from './commands.js'
import type { GitCommands } from './git_commands.js'
import type { GitBranches, GitStatus } from './git_status.js'
import type { CommandResult } from './handle.js'

export type GitConfigScope = 'global' | 'local' | 'system'
export type GitResetMode = 'soft' | 'mixed' | 'hard' | 'merge' | 'keep'

/** Options of every git call. */
export interface GitRequestOpts extends Partial<
  Pick<CommandStartOpts, 'envs' | 'user' | 'cwd' | 'timeoutMs' | 'requestTimeoutMs' | 'signal'>
> {}

export interface Credentials {
  username?: string
  /** Password or token. */
  password?: string
}

export interface GitCloneOpts extends GitRequestOpts, Credentials {
  path?: string
  branch?: string
  depth?: number
  /** Leave the credentials in the repository's configuration. */
  dangerouslyStoreCredentials?: boolean
}

export interface GitInitOpts extends GitRequestOpts {
  bare?: boolean
  initialBranch?: string
}

export interface GitRemoteAddOpts extends GitRequestOpts {
  fetch?: boolean
  overwrite?: boolean
}

export interface GitCommitOpts extends GitRequestOpts {
  authorName?: string
  authorEmail?: string
  allowEmpty?: boolean
}

export interface GitAddOpts extends GitRequestOpts {
  files?: string[]
  all?: boolean
}

export interface GitResetOpts extends GitRequestOpts {
  mode?: GitResetMode
  target?: string
  paths?: string[]
}

export interface GitRestoreOpts extends GitRequestOpts {
  paths: string[]
  staged?: boolean
  worktree?: boolean
  source?: string
}

export interface GitDeleteBranchOpts extends GitRequestOpts {
  force?: boolean
}

export interface GitPushOpts extends GitRequestOpts, Credentials {
  remote?: string
  branch?: string
  /** Make the branch follow the remote one, true when left out. */
  setUpstream?: boolean
}

export interface GitPullOpts extends GitRequestOpts, Credentials {
  remote?: string
  branch?: string
}

export interface GitConfigOpts extends GitRequestOpts {
  /** `global` when left out. */
  scope?: GitConfigScope
  /** The repository, for `local`. */
  path?: string
}

export interface GitDangerouslyAuthenticateOpts extends GitRequestOpts {
  username: string
  password: string
  /** `github.com` when left out. */
  host?: string
  /** `https` when left out. */
  protocol?: string
}

/** Git commands. */
export class Git {
  readonly #commands: Commands

  constructor(commands: Commands) {
    this.#commands = commands
  }

  async clone(url: string, opts?: GitCloneOpts): Promise<CommandResult> {
    return (await this.#load()).clone(url, opts)
  }

  async init(path: string, opts?: GitInitOpts): Promise<CommandResult> {
    return (await this.#load()).init(path, opts)
  }

  async remoteAdd(path: string, name: string, url: string, opts?: GitRemoteAddOpts): Promise<CommandResult> {
    return (await this.#load()).remoteAdd(path, name, url, opts)
  }

  /** URL of a remote; undefined when there is none. */
  async remoteGet(path: string, name: string, opts?: GitRequestOpts): Promise<string | undefined> {
    return (await this.#load()).remoteGet(path, name, opts)
  }

  async status(path: string, opts?: GitRequestOpts): Promise<GitStatus> {
    return (await this.#load()).status(path, opts)
  }

  async branches(path: string, opts?: GitRequestOpts): Promise<GitBranches> {
    return (await this.#load()).branches(path, opts)
  }

  async createBranch(path: string, branch: string, opts?: GitRequestOpts): Promise<CommandResult> {
    return (await this.#load()).createBranch(path, branch, opts)
  }

  async checkoutBranch(path: string, branch: string, opts?: GitRequestOpts): Promise<CommandResult> {
    return (await this.#load()).checkoutBranch(path, branch, opts)
  }

  async deleteBranch(path: string, branch: string, opts?: GitDeleteBranchOpts): Promise<CommandResult> {
    return (await this.#load()).deleteBranch(path, branch, opts)
  }

  async add(path: string, opts?: GitAddOpts): Promise<CommandResult> {
    return (await this.#load()).add(path, opts)
  }

  async commit(path: string, message: string, opts?: GitCommitOpts): Promise<CommandResult> {
    return (await this.#load()).commit(path, message, opts)
  }

  async reset(path: string, opts?: GitResetOpts): Promise<CommandResult> {
    return (await this.#load()).reset(path, opts)
  }

  async restore(path: string, opts: GitRestoreOpts): Promise<CommandResult> {
    return (await this.#load()).restore(path, opts)
  }

  async push(path: string, opts?: GitPushOpts): Promise<CommandResult> {
    return (await this.#load()).push(path, opts)
  }

  async pull(path: string, opts?: GitPullOpts): Promise<CommandResult> {
    return (await this.#load()).pull(path, opts)
  }

  async setConfig(key: string, value: string, opts?: GitConfigOpts): Promise<CommandResult> {
    return (await this.#load()).setConfig(key, value, opts)
  }

  /** Value of a setting; undefined when it is not set. */
  async getConfig(key: string, opts?: GitConfigOpts): Promise<string | undefined> {
    return (await this.#load()).getConfig(key, opts)
  }

  /** Stores credentials in the sandbox for everything that runs there. */
  async dangerouslyAuthenticate(opts: GitDangerouslyAuthenticateOpts): Promise<CommandResult> {
    return (await this.#load()).dangerouslyAuthenticate(opts)
  }

  async configureUser(name: string, email: string, opts?: GitConfigOpts): Promise<CommandResult> {
    return (await this.#load()).configureUser(name, email, opts)
  }

  async #load(): Promise<GitCommands> {
    return new (await import('./git_commands.js')).GitCommands(this.#commands)
  }
}
