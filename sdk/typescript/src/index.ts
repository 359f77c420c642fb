// SPDX-License-Identifier: Apache-2.0
/// <reference lib="esnext.disposable" preserve="true" />
// Everything that this package offers.

export * from './code/charts.js'
export { Execution, ExecutionError, OutputMessage, Result } from './code/execution.js'
export type { E2BData, ExecutionEvent, Logs, MIMEType, RawData } from './code/execution.js'
export { RunningExecution } from './code/interpreter.js'
export type {
  Context,
  CreateCodeContextOpts,
  InterruptOpts,
  RunCodeLanguage,
  RunCodeOpts,
} from './code/interpreter.js'
export { ConnectionConfig, VERSION } from './config.js'
export type { ConnectionConfigOpts, ConnectionOpts, Logger, Username } from './config.js'
export {
  AuthenticationError,
  BuildError,
  FileNotFoundError,
  FileUploadError,
  GitAuthError,
  GitUpstreamError,
  GuestUnresponsiveError,
  InvalidArgumentError,
  NotEnoughSpaceError,
  NotFoundError,
  RateLimitError,
  SandboxError,
  SandboxNotFoundError,
  SandboxNotRunningError,
  SandboxUnreachableError,
  SecretError,
  SecretNotFoundError,
  ServiceBusyError,
  TemplateError,
  TimeoutError,
  VolumeError,
  VolumeNotFoundError,
  VolumePathNotFoundError,
} from './errors.js'
export type { EndCause, ErrorDetails } from './errors.js'
export { ApiClient } from './net/api.js'
export type { WriteData } from './net/transfer.js'
export { Paginator } from './paginator.js'
export { SandboxPaginator, SnapshotPaginator } from './sandbox/api.js'
export { Commands } from './sandbox/commands.js'
export type { CommandConnectOpts, CommandRequestOpts, CommandStartOpts, ProcessInfo } from './sandbox/commands.js'
export { FileType } from './sandbox/entry.js'
export type { EntryInfo } from './sandbox/entry.js'
export { Filesystem } from './sandbox/files.js'
export type {
  FilesystemListOpts,
  FilesystemReadOpts,
  FilesystemRequestOpts,
  FilesystemWriteOpts,
  WatchOpts,
  WriteEntry,
  WriteInfo,
} from './sandbox/files.js'
export { Git } from './sandbox/git.js'
export type {
  GitAddOpts,
  GitCloneOpts,
  GitCommitOpts,
  GitConfigOpts,
  GitConfigScope,
  GitDangerouslyAuthenticateOpts,
  GitDeleteBranchOpts,
  GitInitOpts,
  GitPullOpts,
  GitPushOpts,
  GitRemoteAddOpts,
  GitRequestOpts,
  GitResetMode,
  GitResetOpts,
  GitRestoreOpts,
} from './sandbox/git.js'
export type { GitBranches, GitFileStatus, GitStatus, GitStatusLabel } from './sandbox/git_status.js'
export { CommandExitError, CommandHandle } from './sandbox/handle.js'
export type { CommandResult, OutputEvent, PtyOutput, Stderr, Stdout } from './sandbox/handle.js'
export type {
  CreateSnapshotOpts,
  SandboxApiOpts,
  SandboxConnectOpts,
  SandboxEvent,
  SandboxEventsOpts,
  SandboxForkOpts,
  SandboxInfo,
  SandboxInfoLifecycle,
  SandboxListOpts,
  SandboxListOrder,
  SandboxLogEntry,
  SandboxLogsOpts,
  SandboxMetrics,
  SandboxMetricsOpts,
  SandboxOnResume,
  SandboxOpts,
  SandboxPauseOpts,
  SandboxState,
  SnapshotInfo,
  SnapshotListOpts,
} from './sandbox/info.js'
export type { CatalogueMcpServer, GitHubMcpServer, McpServer, McpServerName } from './sandbox/mcp.js'
export { ALL_TRAFFIC } from './sandbox/network.js'
export type {
  SandboxEgressProxyInfo,
  SandboxEgressProxyOpts,
  SandboxEgressProxyTls,
  SandboxIamOpts,
  SandboxIamToken,
  SandboxIamTokenType,
  SandboxLifecycle,
  SandboxNetworkInfo,
  SandboxNetworkOpts,
  SandboxNetworkRule,
  SandboxNetworkRuleInfo,
  SandboxNetworkRules,
  SandboxNetworkSelector,
  SandboxNetworkSelectorContext,
  SandboxNetworkTransform,
  SandboxNetworkTransformContext,
  SandboxNetworkTransformResolver,
  SandboxNetworkUpdate,
  SandboxOnTimeout,
} from './sandbox/network.js'
export { Pty } from './sandbox/pty.js'
export type { PtyConnectOpts, PtyCreateOpts } from './sandbox/pty.js'
export { Sandbox, Sandbox as default } from './sandbox/sandbox.js'
export type { SandboxUrlOpts } from './sandbox/sandbox.js'
export { getSignature } from './sandbox/signature.js'
export type { SignatureOpts } from './sandbox/signature.js'
export { FilesystemEventType, WatchHandle } from './sandbox/watch.js'
export type { FilesystemEvent } from './sandbox/watch.js'
export { Secret, SecretPaginator } from './secret.js'
export type {
  SecretCreateOpts,
  SecretDestroyOpts,
  SecretExistsOpts,
  SecretGetInfoOpts,
  SecretInfo,
  SecretListOpts,
  SecretUpdateOpts,
} from './secret.js'
export { Volume, VolumeConnectionConfig, VolumeFileType } from './volume.js'
export type {
  VolumeAndToken,
  VolumeApiOpts,
  VolumeEntryStat,
  VolumeInfo,
  VolumeMetadataOptions,
  VolumeMetadataOpts,
  VolumeReadOpts,
  VolumeWriteOptions,
  VolumeWriteOpts,
} from './volume.js'
export { E2B } from './client.js'
export type { E2BClientOpts } from './client.js'
export type { components, paths } from './schema.js'
export { defaultBuildLogger, LogEntry, LogEntryEnd, LogEntryStart } from './template/logs.js'
export type { LogEntryLevel } from './template/logs.js'
export { ReadyCmd, waitForFile, waitForPort, waitForProcess, waitForTimeout, waitForURL } from './template/ready.js'
export { Template, TemplateBase } from './template/template.js'
export type { CallableTemplate } from './template/template.js'
export type {
  BasicBuildOptions,
  BuildInfo,
  BuildOptions,
  BuildStatusReason,
  CopyItem,
  CopyOptions,
  GetBuildStatusOptions,
  PathLike,
  TemplateBuilder,
  TemplateBuildStatus,
  TemplateBuildStatusResponse,
  TemplateClass,
  TemplateFinal,
  TemplateFromImage,
  TemplateOptions,
  TemplateTag,
  TemplateTagInfo,
} from './template/types.js'
