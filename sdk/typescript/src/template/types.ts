// SPDX-License-Identifier: Apache-2.0
// What callers write when they describe a template.

import type { ConnectionOpts } from '../config.js'
import type { McpServerName } from '../sandbox/mcp.js'
import type { LogEntry } from './logs.js'
import type { ReadyCmd } from './ready.js'

export type PathLike = string | URL | Uint8Array

export type TemplateOptions = {
  /** Directory that copied paths are in; that of the calling file when left out. */
  fileContextPath?: PathLike
  /** Paths that are never copied, in the words of a .dockerignore file. */
  fileIgnorePatterns?: string[]
}

export type BasicBuildOptions = {
  /** Name of the template, with a tag if wanted. */
  alias: string
  tags?: string[]
  cpuCount?: number
  memoryMB?: number
  /** Free space in MiB that is wanted after the last step. */
  minFreeDiskMb?: number
  /** Build every step anew. */
  skipCache?: boolean
  onBuildLogs?: (logEntry: LogEntry) => void
}

export type BuildOptions = ConnectionOpts & BasicBuildOptions

/** A build that was asked for. */
export type BuildInfo = {
  alias: string
  name: string
  tags: string[]
  templateId: string
  buildId: string
}

export type GetBuildStatusOptions = ConnectionOpts & {
  /** How many lines of the log to leave out. */
  logsOffset?: number
}

export type TemplateBuildStatus = 'building' | 'waiting' | 'ready' | 'error'

export type BuildStatusReason = {
  message: string
  /** `base`, `finalize`, or the number of a step from 1. */
  step?: string
  logEntries: LogEntry[]
}

export type TemplateBuildStatusResponse = {
  buildID: string
  templateID: string
  status: TemplateBuildStatus
  logEntries: LogEntry[]
  logs: string[]
  reason?: BuildStatusReason
}

export type TemplateTagInfo = {
  buildId: string
  tags: string[]
}

export type TemplateTag = {
  tag: string
  buildId: string
  createdAt: Date
}

export type CopyOptions = {
  /** Send the files even if the server has them. */
  forceUpload?: true
  /** Owner, `user` or `user:group`. */
  user?: string
  mode?: number
  /** Copy what links lead to. */
  resolveSymlinks?: boolean
  /** Compress on the way, true when left out. */
  gzip?: boolean
}

export type CopyItem = CopyOptions & {
  src: PathLike | PathLike[]
  dest: PathLike
}

type AsUser = { user?: string }
type Packages = string | string[]

/** A template that has no base yet. */
export interface TemplateFromImage {
  fromDebianImage(variant?: string): TemplateBuilder
  fromUbuntuImage(variant?: string): TemplateBuilder
  fromFedoraImage(variant?: string): TemplateBuilder
  fromAlpineImage(variant?: string): TemplateBuilder
  fromArchImage(variant?: string): TemplateBuilder
  fromPythonImage(version?: string): TemplateBuilder
  fromNodeImage(variant?: string): TemplateBuilder
  fromBunImage(variant?: string): TemplateBuilder
  fromBaseImage(): TemplateBuilder
  fromImage(baseImage: string, credentials?: { username: string; password: string }): TemplateBuilder
  fromTemplate(template: string): TemplateBuilder
  /** A Dockerfile of one stage, as text or as a path. */
  fromDockerfile(dockerfileContentOrPath: string): TemplateBuilder
  fromAWSRegistry(
    image: string,
    credentials: { accessKeyId: string; secretAccessKey: string; region: string },
  ): TemplateBuilder
  fromGCPRegistry(image: string, credentials: { serviceAccountJSON: object | string }): TemplateBuilder
  /** What comes next is built anew. */
  skipCache(): this
}

/** A template with a base, step by step. */
export interface TemplateBuilder {
  copy(src: PathLike | PathLike[], dest: PathLike, options?: CopyOptions): TemplateBuilder
  copyItems(items: CopyItem[]): TemplateBuilder
  remove(path: PathLike | PathLike[], options?: AsUser & { force?: boolean; recursive?: boolean }): TemplateBuilder
  rename(src: PathLike, dest: PathLike, options?: AsUser & { force?: boolean }): TemplateBuilder
  makeDir(path: PathLike | PathLike[], options?: AsUser & { mode?: number }): TemplateBuilder
  makeSymlink(src: PathLike, dest: PathLike, options?: AsUser & { force?: boolean }): TemplateBuilder
  runCmd(command: string, options?: AsUser): TemplateBuilder
  runCmd(commands: string[], options?: AsUser): TemplateBuilder
  runCmd(commandOrCommands: string | string[], options?: AsUser): TemplateBuilder
  setWorkdir(workdir: PathLike): TemplateBuilder
  setUser(user: string): TemplateBuilder
  pipInstall(packages?: Packages, options?: { g?: boolean }): TemplateBuilder
  npmInstall(packages?: Packages, options?: { g?: boolean; dev?: boolean }): TemplateBuilder
  bunInstall(packages?: Packages, options?: { g?: boolean; dev?: boolean }): TemplateBuilder
  aptInstall(packages: Packages, options?: { noInstallRecommends?: boolean; fixMissing?: boolean }): TemplateBuilder
  addMcpServer(servers: McpServerName | McpServerName[]): TemplateBuilder
  gitClone(url: string, path?: PathLike, options?: AsUser & { branch?: string; depth?: number }): TemplateBuilder
  setEnvs(envs: Record<string, string>): TemplateBuilder
  /** What comes next is built anew. */
  skipCache(): this
  setStartCmd(startCommand: string, readyCommand: string | ReadyCmd): TemplateFinal
  setReadyCmd(readyCommand: string | ReadyCmd): TemplateFinal
  betaDevContainerPrebuild(devcontainerDirectory: string): TemplateBuilder
  betaSetDevContainerStart(devcontainerDirectory: string): TemplateFinal
}

/** A template that is complete. */
export interface TemplateFinal {} // eslint-disable-line @typescript-eslint/no-empty-object-type -- as the stock SDK

export type TemplateClass = TemplateBuilder | TemplateFinal

/** A step as the API takes it. */
export interface Instruction {
  type: 'RUN' | 'COPY' | 'ENV' | 'WORKDIR' | 'USER'
  args: string[]
  force: boolean
  forceUpload?: true
  resolveSymlinks?: boolean
  gzip?: boolean
  filesHash?: string
}
