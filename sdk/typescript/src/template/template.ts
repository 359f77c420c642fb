// SPDX-License-Identifier: Apache-2.0
// Describes templates step by step. What builds them is loaded with the first call that asks the server (build.ts).

import { ClientFactory, type ConnectionOpts } from '../config.js'
import { BuildError, InvalidArgumentError, TemplateError } from '../errors.js'
import type { McpServerName } from '../sandbox/mcp.js'
import { shellQuote } from '../sandbox/shell.js'
import type { Recipe } from './build.js'
import { callerDirectory, callerTrace } from './caller.js'
import { applyDockerfile } from './dockerfile.js'
import { checkInside, readText } from './local.js'
import { ReadyCmd, waitForFile } from './ready.js'
import type {
  BuildInfo,
  BuildOptions,
  CopyItem,
  CopyOptions,
  GetBuildStatusOptions,
  Instruction,
  PathLike,
  TemplateBuilder,
  TemplateBuildStatusResponse,
  TemplateClass,
  TemplateFinal,
  TemplateFromImage,
  TemplateOptions,
  TemplateTag,
  TemplateTagInfo,
} from './types.js'

const calls = (): Promise<typeof import('./build.js')> => import('./build.js')

const BASE_IMAGE = 'e2bdev/base'

type BuildArgs = [name: string, options?: Omit<BuildOptions, 'alias'>] | [options: BuildOptions]

function listOf<T>(one: T | T[] | undefined): T[] {
  return one === undefined ? [] : Array.isArray(one) ? one : [one]
}

function textOf(path: PathLike): string {
  if (path instanceof Uint8Array) return new TextDecoder().decode(path)
  return typeof path !== 'string' && path.protocol === 'file:' ? decodeURIComponent(path.pathname) : String(path)
}

const octal = (mode: number): string => mode.toString(8).padStart(4, '0')

/** A template: what it is built from, its steps, and what runs when it starts. */
export class TemplateBase extends ClientFactory implements TemplateFromImage, TemplateBuilder, TemplateFinal {
  private image?: string = BASE_IMAGE
  private base?: string
  private registry?: object
  private startCmd?: string
  private readyCmd?: string
  #force = false
  #forceNext = false
  readonly #steps: Instruction[] = []
  readonly #root: string
  readonly #ignore: string[]
  private readonly traces: string[] = []

  constructor(options?: TemplateOptions) {
    super()
    const root = options?.fileContextPath
    this.#root = root === undefined ? callerDirectory() : textOf(root)
    this.#ignore = options?.fileIgnorePatterns ?? []
  }

  /** The template as the API takes it. */
  static async toJSON(template: TemplateClass, computeHashes = true): Promise<string> {
    const recipe = (template as TemplateBase).#recipe()
    const body = computeHashes ? (await calls()).bodyOf(recipe) : recipe.body(recipe.steps)
    return JSON.stringify(body, undefined, 2)
  }

  /** The template as a Dockerfile. */
  static toDockerfile(template: TemplateClass): string {
    return (template as TemplateBase).#dockerfile()
  }

  /** Builds a template and waits for its end. */
  static async build(template: TemplateClass, name: string, options?: Omit<BuildOptions, 'alias'>): Promise<BuildInfo>
  static async build(template: TemplateClass, options: BuildOptions): Promise<BuildInfo>
  static async build(template: TemplateClass, ...args: BuildArgs): Promise<BuildInfo> {
    const { name, opts } = this.buildArgs(args)
    const recipe = (template as TemplateBase).#recipe(opts.skipCache)
    return (await calls()).build(recipe, name, opts)
  }

  /** Starts a build; getBuildStatus() tells how it goes. */
  static async buildInBackground(
    template: TemplateClass,
    name: string,
    options?: Omit<BuildOptions, 'alias'>,
  ): Promise<BuildInfo>
  static async buildInBackground(template: TemplateClass, options: BuildOptions): Promise<BuildInfo>
  static async buildInBackground(template: TemplateClass, ...args: BuildArgs): Promise<BuildInfo> {
    const { name, opts } = this.buildArgs(args)
    const recipe = (template as TemplateBase).#recipe(opts.skipCache)
    return (await calls()).startBuild(recipe, name, opts)
  }

  static async getBuildStatus(
    data: Pick<BuildInfo, 'templateId' | 'buildId'>,
    options?: GetBuildStatusOptions,
  ): Promise<TemplateBuildStatusResponse> {
    const { templateId, buildId } = data
    return (await calls()).buildStatus(templateId, buildId, options?.logsOffset, this.resolveOpts(options))
  }

  /** Whether a template of this name exists, of this team or another. */
  static async exists(name: string, options?: ConnectionOpts): Promise<boolean> {
    return (await calls()).exists(name, this.resolveOpts(options))
  }

  /** The same as exists(). */
  static async aliasExists(alias: string, options?: ConnectionOpts): Promise<boolean> {
    return this.exists(alias, options)
  }

  /** Puts tags on the build that `targetName` means. */
  static async assignTags(
    targetName: string,
    tags: string | string[],
    options?: ConnectionOpts,
  ): Promise<TemplateTagInfo> {
    return (await calls()).assignTags(targetName, listOf(tags), this.resolveOpts(options))
  }

  static async removeTags(name: string, tags: string | string[], options?: ConnectionOpts): Promise<void> {
    return (await calls()).removeTags(name, listOf(tags), this.resolveOpts(options))
  }

  static async getTags(templateId: string, options?: ConnectionOpts): Promise<TemplateTag[]> {
    return (await calls()).getTags(templateId, this.resolveOpts(options))
  }

  fromDebianImage(variant = 'stable'): TemplateBuilder {
    return this.fromImage(`debian:${variant}`)
  }

  fromUbuntuImage(variant = 'latest'): TemplateBuilder {
    return this.fromImage(`ubuntu:${variant}`)
  }

  fromFedoraImage(variant = '44'): TemplateBuilder {
    return this.fromImage(`fedora:${variant}`)
  }

  fromAlpineImage(variant = '3.24'): TemplateBuilder {
    return this.fromImage(`alpine:${variant}`)
  }

  fromArchImage(variant = 'latest'): TemplateBuilder {
    return this.fromImage(`archlinux:${variant}`)
  }

  fromPythonImage(version = '3'): TemplateBuilder {
    return this.fromImage(`python:${version}`)
  }

  fromNodeImage(variant = 'lts'): TemplateBuilder {
    return this.fromImage(`node:${variant}`)
  }

  fromBunImage(variant = 'latest'): TemplateBuilder {
    return this.fromImage(`oven/bun:${variant}`)
  }

  fromBaseImage(): TemplateBuilder {
    return this.fromImage(BASE_IMAGE)
  }

  fromImage(baseImage: string, credentials?: { username: string; password: string }): TemplateBuilder {
    if (credentials && (!credentials.username || !credentials.password)) {
      throw new InvalidArgumentError('registry credentials need both username and password', callerTrace())
    }
    return this.#from({ image: baseImage }, credentials && { type: 'registry', ...credentials })
  }

  fromTemplate(template: string): TemplateBuilder {
    return this.#from({ base: template })
  }

  fromDockerfile(dockerfileContentOrPath: string): TemplateBuilder {
    const isText = /\n|^\s*(#|FROM\s)/i.test(dockerfileContentOrPath)
    const text = isText ? dockerfileContentOrPath : readText(dockerfileContentOrPath)
    return this.#from({ image: applyDockerfile(text ?? dockerfileContentOrPath, this) })
  }

  fromAWSRegistry(
    image: string,
    credentials: { accessKeyId: string; secretAccessKey: string; region: string },
  ): TemplateBuilder {
    const { accessKeyId, secretAccessKey, region } = credentials
    const registry = { awsAccessKeyId: accessKeyId, awsSecretAccessKey: secretAccessKey, awsRegion: region }
    return this.#from({ image }, { type: 'aws', ...registry })
  }

  fromGCPRegistry(image: string, credentials: { serviceAccountJSON: string | object }): TemplateBuilder {
    const { serviceAccountJSON: account } = credentials
    const text = typeof account === 'string' ? readText(`${this.#root}/${account}`) : JSON.stringify(account)
    if (text === undefined)
      throw new InvalidArgumentError(`no service account file ${String(account)}`, callerTrace())
    return this.#from({ image }, { type: 'gcp', serviceAccountJson: text })
  }

  copy(src: PathLike | PathLike[], dest: PathLike, options: CopyOptions = {}): TemplateBuilder {
    const { forceUpload, user = '', mode, resolveSymlinks, gzip } = options
    for (const one of listOf(src)) {
      const path = textOf(one)
      checkInside(path, callerTrace())
      const args = [path, textOf(dest), user, mode ? octal(mode) : '']
      this.#step('COPY', args, { force: forceUpload || this.#forceNext, forceUpload, resolveSymlinks, gzip })
    }
    return this
  }

  copyItems(items: CopyItem[]): TemplateBuilder {
    for (const { src, dest, ...options } of items) this.copy(src, dest, options)
    return this
  }

  remove(
    path: PathLike | PathLike[],
    options?: { force?: boolean; recursive?: boolean; user?: string },
  ): TemplateBuilder {
    return this.#command(['rm', options?.recursive && '-r', options?.force && '-f', ...quoted(path)], options)
  }

  rename(src: PathLike, dest: PathLike, options?: { force?: boolean; user?: string }): TemplateBuilder {
    return this.#command(['mv', ...quoted([src, dest]), options?.force && '-f'], options)
  }

  makeDir(path: PathLike | PathLike[], options?: { mode?: number; user?: string }): TemplateBuilder {
    return this.#command(['mkdir', '-p', options?.mode && `-m ${octal(options.mode)}`, ...quoted(path)], options)
  }

  makeSymlink(src: PathLike, dest: PathLike, options?: { user?: string; force?: boolean }): TemplateBuilder {
    return this.#command(['ln', '-s', options?.force && '-f', ...quoted([src, dest])], options)
  }

  runCmd(command: string, options?: { user?: string }): TemplateBuilder
  runCmd(commands: string[], options?: { user?: string }): TemplateBuilder
  runCmd(commandOrCommands: string | string[], options?: { user?: string }): TemplateBuilder
  runCmd(commandOrCommands: string | string[], options?: { user?: string }): TemplateBuilder {
    const command = listOf(commandOrCommands).join(' && ')
    return this.#step('RUN', options?.user ? [command, options.user] : [command])
  }

  setWorkdir(workdir: PathLike): TemplateBuilder {
    return this.#step('WORKDIR', [textOf(workdir)])
  }

  setUser(user: string): TemplateBuilder {
    return this.#step('USER', [user])
  }

  pipInstall(packages?: string | string[], options?: { g?: boolean }): TemplateBuilder {
    const g = options?.g ?? true
    const list = packages ? listOf(packages) : ['.']
    return this.#command(['pip', 'install', !g && '--user', ...list], { user: g ? 'root' : undefined })
  }

  npmInstall(packages?: string | string[], options?: { g?: boolean; dev?: boolean }): TemplateBuilder {
    return this.#install('npm', '--save-dev', packages, options)
  }

  bunInstall(packages?: string | string[], options?: { g?: boolean; dev?: boolean }): TemplateBuilder {
    return this.#install('bun', '--dev', packages, options)
  }

  aptInstall(
    packages: string | string[],
    options?: { noInstallRecommends?: boolean; fixMissing?: boolean },
  ): TemplateBuilder {
    const flags = [options?.noInstallRecommends && '--no-install-recommends', options?.fixMissing && '--fix-missing']
    const install = 'DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get install -y'
    return this.#command(['apt-get update &&', install, ...flags, ...listOf(packages)], { user: 'root' })
  }

  addMcpServer(servers: McpServerName | McpServerName[]): TemplateBuilder {
    this.#needBase('mcp-gateway', 'MCP servers can only be added to mcp-gateway template')
    return this.#command(['mcp-gateway pull', ...listOf(servers)], { user: 'root' })
  }

  gitClone(
    url: string,
    path?: PathLike,
    options?: { branch?: string; depth?: number; user?: string },
  ): TemplateBuilder {
    const branch = options?.branch && `--branch ${shellQuote(options.branch)} --single-branch`
    const depth = options?.depth && `--depth ${options.depth}`
    return this.#command(['git clone', shellQuote(url), branch, depth, path && shellQuote(textOf(path))], options)
  }

  setEnvs(envs: Record<string, string>): TemplateBuilder {
    const args = Object.entries(envs).flat()
    return args.length ? this.#step('ENV', args) : this
  }

  skipCache(): this {
    this.#forceNext = true
    return this
  }

  setStartCmd(startCommand: string, readyCommand: string | ReadyCmd): TemplateFinal {
    this.startCmd = startCommand
    return this.setReadyCmd(readyCommand)
  }

  setReadyCmd(readyCommand: string | ReadyCmd): TemplateFinal {
    this.readyCmd = readyCommand instanceof ReadyCmd ? readyCommand.getCmd() : readyCommand
    this.traces.push(callerTrace())
    return this
  }

  betaDevContainerPrebuild(devcontainerDirectory: string): TemplateBuilder {
    this.#needBase('devcontainer', 'Devcontainers can only used in the devcontainer template')
    return this.#command(['devcontainer build --workspace-folder', shellQuote(devcontainerDirectory)], {
      user: 'root',
    })
  }

  betaSetDevContainerStart(devcontainerDirectory: string): TemplateFinal {
    this.#needBase('devcontainer', 'Devcontainers can only used in the devcontainer template')
    const dir = shellQuote(devcontainerDirectory)
    const up = `sudo devcontainer up --workspace-folder ${dir}`
    const script = `sudo /prepare-exec.sh ${dir} | sudo tee /devcontainer.sh > /dev/null`
    const done = 'sudo chmod +x /devcontainer.sh && sudo touch /devcontainer.up'
    return this.setStartCmd(`${up} && ${script} && ${done}`, waitForFile('/devcontainer.up'))
  }

  private static buildArgs(args: BuildArgs): { name: string; opts: Omit<BuildOptions, 'alias'> } {
    const [first, second] = args
    const { alias, ...rest } = typeof first === 'string' ? { ...second, alias: first } : first
    if (!alias) throw new TemplateError('Name must be provided')
    return { name: alias, opts: this.resolveOpts(rest) ?? {} }
  }

  #from(source: { image?: string; base?: string }, registry?: object): this {
    this.image = source.image
    this.base = source.base
    if (registry) this.registry = registry
    if (this.#forceNext) this.#force = true
    // The base comes first in the list that failed steps are looked up in, also when steps were added before it.
    this.traces.unshift(callerTrace())
    return this
  }

  #step(type: Instruction['type'], args: string[], more: Partial<Instruction> = {}): this {
    this.#steps.push({ type, args, force: this.#forceNext, ...more })
    this.traces.push(callerTrace())
    return this
  }

  #command(words: Array<string | number | false | undefined>, options?: { user?: string }): TemplateBuilder {
    return this.runCmd(words.filter(Boolean).join(' '), { user: options?.user })
  }

  #install(
    tool: string,
    dev: string,
    packages: string | string[] | undefined,
    options?: { g?: boolean; dev?: boolean },
  ): TemplateBuilder {
    const { g } = options ?? {}
    const words = [tool, 'install', g && '-g', options?.dev && dev, ...(packages ? listOf(packages) : [])]
    return this.#command(words, { user: g ? 'root' : undefined })
  }

  #needBase(name: string, message: string): void {
    if (this.base !== name) throw new BuildError(message, callerTrace())
  }

  #recipe(skipCache = false): Recipe {
    const { startCmd, readyCmd, image, base, registry, traces } = this
    const force = this.#force || skipCache
    return {
      steps: this.#steps,
      traces,
      files: [this.#root, this.#ignore],
      body: (steps) => ({
        startCmd,
        readyCmd,
        steps,
        force,
        fromImage: image,
        fromTemplate: base,
        fromImageRegistry: registry,
      }),
    }
  }

  #dockerfile(): string {
    if (!this.image) throw new Error('a template that is built from another template has no Dockerfile')
    const lines = this.#steps.map(({ type, args }) => {
      if (type === 'RUN') return `RUN ${args[0]}`
      if (type === 'COPY') return `COPY ${args[0]} ${args[1]}`
      if (type !== 'ENV') return `${type} ${args.join(' ')}`
      return `ENV ${args
        .map((arg, i) => (i % 2 ? `=${arg}` : ` ${arg}`))
        .join('')
        .trim()}`
    })
    const start = this.startCmd ? [`ENTRYPOINT ${this.startCmd}`] : []
    return [`FROM ${this.image}`, ...lines, ...start, ''].join('\n')
  }
}

function quoted(paths: PathLike | PathLike[]): string[] {
  return listOf(paths).map((path) => shellQuote(textOf(path)))
}

export type CallableTemplate<T extends typeof TemplateBase> = T & ((options?: TemplateOptions) => TemplateFromImage)

/** Lets a class be called without `new`. */
export function callable<T extends typeof TemplateBase>(Class: T): CallableTemplate<T> {
  return new Proxy(Class, {
    apply: (target, _, args: [TemplateOptions?]) => new target(...args),
  }) as CallableTemplate<T>
}

/** `Template()` begins a template; its static methods build and tag them. */
export const Template: CallableTemplate<typeof TemplateBase> = /* @__PURE__ */ callable(TemplateBase)
