// SPDX-License-Identifier: Apache-2.0
// The commands behind Git, loaded with its first call. Credentials of a call reach git by a helper that reads two
// variables of that call alone: they are neither in the command line, nor in the repository's configuration, nor in
// the list of processes.

import { detailed, GitAuthError, GitUpstreamError, InvalidArgumentError } from '../errors.js'
import type { Commands } from './commands.js'
import type {
  Credentials,
  GitAddOpts,
  GitCloneOpts,
  GitCommitOpts,
  GitConfigOpts,
  GitDangerouslyAuthenticateOpts,
  GitDeleteBranchOpts,
  GitInitOpts,
  GitPullOpts,
  GitPushOpts,
  GitRemoteAddOpts,
  GitRequestOpts,
  GitResetOpts,
  GitRestoreOpts,
} from './git.js'
import { branchesOf, type GitBranches, type GitStatus, statusOf } from './git_status.js'
import { CommandExitError, type CommandResult } from './handle.js'
import { shellQuote } from './shell.js'

const HELPER = '!f() { echo "username=$CLOCHE_GIT_USERNAME"; echo "password=$CLOCHE_GIT_PASSWORD"; }; f'
const SCOPES = ['global', 'local', 'system']
const MODES = ['soft', 'mixed', 'hard', 'merge', 'keep']
const NOT_ALLOWED = new RegExp(
  'authentication failed|terminal prompts disabled|could not read username|invalid username or password|' +
    'access denied|permission denied|not authorized',
  'i',
)
const NO_UPSTREAM = new RegExp(
  'no upstream (branch|configured)|no tracking information|set the (remote as upstream|upstream branch)|' +
    'specify which branch you want to merge',
  'i',
)

export class GitCommands {
  readonly #commands: Commands

  constructor(commands: Commands) {
    this.#commands = commands
  }

  async clone(url: string, opts: GitCloneOpts = {}): Promise<CommandResult> {
    const { username, password, branch, depth, path, dangerouslyStoreCredentials } = opts
    if (password && !username) throw new InvalidArgumentError('git clone: a password or token needs a username')
    const stored = dangerouslyStoreCredentials && username && password ? withCredentials(url, opts) : url
    const args = ['clone', stored]
    if (branch) args.push('--branch', branch, '--single-branch')
    if (depth) args.push('--depth', String(depth))
    if (path) args.push(path)
    return this.remote('clone', args, undefined, opts, url)
  }

  async init(path: string, opts: GitInitOpts = {}): Promise<CommandResult> {
    const args = ['init']
    if (opts.initialBranch) args.push('--initial-branch', opts.initialBranch)
    if (opts.bare) args.push('--bare')
    return this.#git([...args, path], undefined, opts)
  }

  async remoteAdd(path: string, name: string, url: string, opts: GitRemoteAddOpts = {}): Promise<CommandResult> {
    if (!name || !url) throw new InvalidArgumentError('git remote add: a name and a URL are needed')
    const add = ['remote', 'add', ...(opts.fetch ? ['-f'] : []), name, url]
    if (!opts.overwrite) return this.#git(add, path, opts)
    const either = `${command(add, path)} || ${command(['remote', 'set-url', name, url], path)}`
    return this.#shell(opts.fetch ? `(${either}) && ${command(['fetch', name], path)}` : either, opts)
  }

  async remoteGet(path: string, name: string, opts?: GitRequestOpts): Promise<string | undefined> {
    if (!name) throw new InvalidArgumentError('git remote get-url: a name is needed')
    const { stdout } = await this.#shell(`${command(['remote', 'get-url', name], path)} || true`, opts)
    return stdout.trim() || undefined
  }

  async status(path: string, opts?: GitRequestOpts): Promise<GitStatus> {
    return statusOf((await this.#git(['status', '--porcelain=1', '-b'], path, opts)).stdout)
  }

  async branches(path: string, opts?: GitRequestOpts): Promise<GitBranches> {
    return branchesOf((await this.#git(['branch', '--format=%(refname:short)\t%(HEAD)'], path, opts)).stdout)
  }

  async createBranch(path: string, branch: string, opts?: GitRequestOpts): Promise<CommandResult> {
    return this.#git(['checkout', '-b', branch], path, opts)
  }

  async checkoutBranch(path: string, branch: string, opts?: GitRequestOpts): Promise<CommandResult> {
    return this.#git(['checkout', branch], path, opts)
  }

  async deleteBranch(path: string, branch: string, opts?: GitDeleteBranchOpts): Promise<CommandResult> {
    return this.#git(['branch', opts?.force ? '-D' : '-d', branch], path, opts)
  }

  async add(path: string, opts: GitAddOpts = {}): Promise<CommandResult> {
    const { files, all = true } = opts
    return this.#git(['add', ...(files?.length ? ['--', ...files] : [all ? '-A' : '.'])], path, opts)
  }

  async commit(path: string, message: string, opts: GitCommitOpts = {}): Promise<CommandResult> {
    const args: string[] = []
    if (opts.authorName) args.push('-c', `user.name=${opts.authorName}`)
    if (opts.authorEmail) args.push('-c', `user.email=${opts.authorEmail}`)
    args.push('commit', '-m', message)
    if (opts.allowEmpty) args.push('--allow-empty')
    return this.#git(args, path, opts)
  }

  async reset(path: string, opts: GitResetOpts = {}): Promise<CommandResult> {
    const { mode, target, paths } = opts
    if (mode && !MODES.includes(mode))
      throw new InvalidArgumentError(`git reset: mode must be one of ${MODES.join(', ')}`)
    const args = ['reset']
    if (mode) args.push(`--${mode}`)
    if (target) args.push(target)
    if (paths?.length) args.push('--', ...paths)
    return this.#git(args, path, opts)
  }

  async restore(path: string, opts: GitRestoreOpts): Promise<CommandResult> {
    const { paths, staged, source } = opts
    const worktree = opts.worktree ?? !staged
    if (!paths?.length) throw new InvalidArgumentError('git restore: at least one path is needed')
    if (!staged && !worktree) throw new InvalidArgumentError('git restore: staged or worktree must be true')
    const args = ['restore']
    if (worktree) args.push('--worktree')
    if (staged) args.push('--staged')
    if (source) args.push('--source', source)
    return this.#git([...args, '--', ...paths], path, opts)
  }

  async push(path: string, opts: GitPushOpts = {}): Promise<CommandResult> {
    const { branch, setUpstream = true, username, password } = opts
    if (password && !username) throw new InvalidArgumentError('git push: a password or token needs a username')
    const remote = username && password ? await this.#remoteName(path, opts) : opts.remote
    const args = ['push']
    if (setUpstream && remote) args.push('--set-upstream')
    if (remote) args.push(remote)
    if (branch) args.push(branch)
    return this.remote('push', args, path, opts)
  }

  async pull(path: string, opts: GitPullOpts = {}): Promise<CommandResult> {
    const { branch, username, password } = opts
    if (password && !username) throw new InvalidArgumentError('git pull: a password or token needs a username')
    if (!opts.remote && !branch && !(await this.#hasUpstream(path, opts))) throw upstreamError('pull')
    const remote = username && password ? await this.#remoteName(path, opts) : opts.remote
    const args = ['pull']
    if (remote) args.push(remote)
    if (branch) args.push(branch)
    return this.remote('pull', args, path, opts)
  }

  async setConfig(key: string, value: string, opts: GitConfigOpts = {}): Promise<CommandResult> {
    const { flag, repository } = scopeOf(key, opts)
    return this.#git(['config', flag, key, value], repository, opts)
  }

  async getConfig(key: string, opts: GitConfigOpts = {}): Promise<string | undefined> {
    const { flag, repository } = scopeOf(key, opts)
    const { stdout } = await this.#shell(`${command(['config', flag, '--get', key], repository)} || true`, opts)
    return stdout.trim() || undefined
  }

  async dangerouslyAuthenticate(opts: GitDangerouslyAuthenticateOpts): Promise<CommandResult> {
    const { username, password, host = 'github.com', protocol = 'https' } = opts
    if (!username || !password) throw new InvalidArgumentError('git: both username and password are needed')
    await this.#git(['config', '--global', 'credential.helper', 'store'], undefined, opts)
    const envs = { ...opts.envs, CLOCHE_GIT_USERNAME: username, CLOCHE_GIT_PASSWORD: password }
    const where = shellQuote(`protocol=${protocol.trim()}\nhost=${host.trim()}`)
    const told = `printf '%s\\nusername=%s\\npassword=%s\\n\\n' ${where} "$CLOCHE_GIT_USERNAME" "$CLOCHE_GIT_PASSWORD"`
    return this.#shell(`${told} | ${command(['credential', 'approve'])}`, { ...opts, envs })
  }

  async configureUser(name: string, email: string, opts: GitConfigOpts = {}): Promise<CommandResult> {
    if (!name || !email) throw new InvalidArgumentError('git: both name and email are needed')
    await this.setConfig('user.name', name, opts)
    return this.setConfig('user.email', email, opts)
  }

  #git(args: string[], path: string | undefined, opts?: GitRequestOpts): Promise<CommandResult> {
    return this.#shell(command(args, path), opts)
  }

  #shell(cmd: string, opts: GitRequestOpts = {}): Promise<CommandResult> {
    const { user, cwd, timeoutMs, requestTimeoutMs, signal } = opts
    const envs = { GIT_TERMINAL_PROMPT: '0', ...opts.envs }
    return this.#commands.run(cmd, { user, cwd, timeoutMs, requestTimeoutMs, signal, envs })
  }

  /** Runs what talks to a remote, with the call's credentials. */
  private async remote(
    action: 'clone' | 'push' | 'pull',
    args: string[],
    path: string | undefined,
    opts: GitRequestOpts & Credentials,
    url?: string,
  ): Promise<CommandResult> {
    const { username, password } = opts
    const helper: string[] = []
    let { envs } = opts
    if (username && password) {
      if (url) withCredentials(url, opts)
      helper.push('-c', 'credential.helper=', '-c', `credential.helper=${HELPER}`)
      envs = { ...envs, CLOCHE_GIT_USERNAME: username, CLOCHE_GIT_PASSWORD: password }
    }
    try {
      return await this.#git([...helper, ...args], path, { ...opts, envs })
    } catch (error) {
      throw failureOf(action, error, Boolean(username) && !password)
    }
  }

  async #remoteName(path: string, opts: GitPushOpts | GitPullOpts): Promise<string> {
    if (opts.remote) return opts.remote
    const names = (await this.#git(['remote'], path, opts)).stdout.split('\n').filter((line) => line.trim())
    if (names.length === 1) return names[0]!.trim()
    throw new InvalidArgumentError(`git: the repository has ${names.length} remotes; say which one`)
  }

  async #hasUpstream(path: string, opts: GitRequestOpts): Promise<boolean> {
    try {
      await this.#git(['rev-parse', '--abbrev-ref', '--symbolic-full-name', '@{u}'], path, opts)
      return true
    } catch (error) {
      if (error instanceof CommandExitError) return false
      throw error
    }
  }
}

function command(args: string[], path?: string): string {
  return ['git', ...(path ? ['-C', path] : []), ...args].map(shellQuote).join(' ')
}

function withCredentials(url: string, { username = '', password = '' }: Credentials): string {
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    throw new InvalidArgumentError(`Invalid Git URL: ${url}`)
  }
  if (!/^https?:$/.test(parsed.protocol)) {
    throw new InvalidArgumentError('Only http(s) Git URLs support username/password credentials.')
  }
  parsed.username = username
  parsed.password = password
  return parsed.toString()
}

function scopeOf(key: string, { scope = 'global', path }: GitConfigOpts): { flag: string; repository?: string } {
  if (!key) throw new InvalidArgumentError('git config: a key is needed')
  if (!SCOPES.includes(scope)) throw new InvalidArgumentError(`git config: scope must be one of ${SCOPES.join(', ')}`)
  if (scope !== 'local') return { flag: `--${scope}` }
  if (!path) throw new InvalidArgumentError("git config: scope 'local' needs the path of a repository")
  return { flag: '--local', repository: path }
}

function upstreamError(action: string): GitUpstreamError {
  return new GitUpstreamError(
    `Git ${action} failed because no upstream branch is configured: pass remote and branch, or push with setUpstream`,
  )
}

function failureOf(action: string, error: unknown, incomplete: boolean): unknown {
  if (!(error instanceof CommandExitError)) return error
  const said = `${error.stderr}\n${error.stdout}`
  if (NOT_ALLOWED.test(said)) {
    const what = incomplete ? 'a password/token' : 'credentials'
    return detailed(new GitAuthError(`Git ${action} requires ${what} for private repositories.`), { cause: error })
  }
  return NO_UPSTREAM.test(said) ? detailed(upstreamError(action), { cause: error }) : error
}
