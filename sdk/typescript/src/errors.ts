// SPDX-License-Identifier: Apache-2.0
// The errors of this package. Names and parents are those of the stock SDKs, so that `catch` blocks written for them
// keep working; what is added is `statusCode`, `errorCode` and `endCause` on every one of them.

/** Why a sandbox is gone, as the server says it. */
export interface EndCause {
  /** One word: `killed`, `timeout`, `crashed`, `paused`, ... */
  reason: string
  /** The server's whole sentence, for people. */
  message: string
  /** When it ended, where the server knows. */
  at?: Date
}

/** What every error of this package may tell beside its message. */
export interface ErrorDetails {
  /** HTTP status of the answer that was the error. */
  statusCode?: number
  /** The API's own word for the error, for instance `idempotency_request_mismatch`. */
  errorCode?: string
  /** Why the sandbox is gone, when that is the reason of the error. */
  endCause?: EndCause
}

/** Parent of most errors of this package. */
export class SandboxError extends Error implements ErrorDetails {
  statusCode?: number
  errorCode?: string
  endCause?: EndCause

  constructor(message?: string) {
    super(message)
    this.name = new.target.name
  }
}

/** Something took longer than it may, or the sandbox ended meanwhile. */
export class TimeoutError extends SandboxError {
  constructor(message: string) {
    super(message)
    this.name = 'TimeoutError'
  }
}

/** The sandbox has ended or is paused: `endCause` says why. */
export class SandboxNotRunningError extends TimeoutError {
  constructor(message: string) {
    super(message)
    this.name = 'SandboxNotRunningError'
  }
}

/** The sandbox runs, but what was asked for inside it does not answer. */
export class SandboxUnreachableError extends TimeoutError {
  constructor(message: string) {
    super(message)
    this.name = 'SandboxUnreachableError'
  }
}

/** The sandbox was paused while its agent was silent: connect with `onResume: 'reboot'`. */
export class GuestUnresponsiveError extends SandboxError {
  constructor(message: string) {
    super(message)
    this.name = 'GuestUnresponsiveError'
  }
}

/** An argument that can't be meant. */
export class InvalidArgumentError extends SandboxError {
  constructor(message: string, stackTrace?: string) {
    super(message)
    this.name = 'InvalidArgumentError'
    if (stackTrace) this.stack = stackTrace
  }
}

/** The sandbox's disk is full. */
export class NotEnoughSpaceError extends SandboxError {
  constructor(message: string) {
    super(message)
    this.name = 'NotEnoughSpaceError'
  }
}

/** What was named does not exist. */
export class NotFoundError extends SandboxError {
  constructor(message: string) {
    super(message)
    this.name = 'NotFoundError'
  }
}

/** No such file or directory in the sandbox. */
export class FileNotFoundError extends NotFoundError {
  constructor(message: string) {
    super(message)
    this.name = 'FileNotFoundError'
  }
}

/** No such sandbox: `endCause` says why, where the server remembers one. */
export class SandboxNotFoundError extends NotFoundError {
  constructor(message: string) {
    super(message)
    this.name = 'SandboxNotFoundError'
  }
}

/** The API key or the sandbox's token was not accepted. */
export class AuthenticationError extends Error implements ErrorDetails {
  statusCode?: number
  errorCode?: string
  endCause?: EndCause

  constructor(message: string) {
    super(message)
    this.name = 'AuthenticationError'
  }
}

/** A git remote did not accept the credentials. */
export class GitAuthError extends AuthenticationError {
  constructor(message: string) {
    super(message)
    this.name = 'GitAuthError'
  }
}

/** The git branch follows no remote one. */
export class GitUpstreamError extends SandboxError {
  constructor(message: string) {
    super(message)
    this.name = 'GitUpstreamError'
  }
}

/** The template is too old for what was asked. */
export class TemplateError extends SandboxError {
  constructor(message: string, stackTrace?: string) {
    super(message)
    this.name = 'TemplateError'
    if (stackTrace) this.stack = stackTrace
  }
}

/** A limit of the team was reached, or too many requests came at once. */
export class RateLimitError extends SandboxError {
  constructor(message: string) {
    super(message)
    this.name = 'RateLimitError'
    this.statusCode = 429
  }
}

/** The server has no room now; nothing was changed, trying again is safe. */
export class ServiceBusyError extends Error {
  readonly statusCode = 503 as const
  errorCode?: string
  endCause?: EndCause

  constructor(message: string) {
    super(message)
    this.name = 'ServiceBusyError'
  }
}

/** A template could not be built. */
export class BuildError extends Error implements ErrorDetails {
  statusCode?: number
  errorCode?: string
  endCause?: EndCause

  constructor(message: string, stackTrace?: string) {
    super(message)
    this.name = 'BuildError'
    if (stackTrace) this.stack = stackTrace
  }
}

/** Files of a template could not be sent. */
export class FileUploadError extends BuildError {
  constructor(message: string, stackTrace?: string) {
    super(message, stackTrace)
    this.name = 'FileUploadError'
  }
}

/** Parent of what goes wrong with volumes. */
export class VolumeError extends Error implements ErrorDetails {
  statusCode?: number
  errorCode?: string
  endCause?: EndCause

  constructor(message: string) {
    super(message)
    this.name = 'VolumeError'
  }
}

/** No such volume. */
export class VolumeNotFoundError extends VolumeError {
  constructor(message: string) {
    super(message)
    this.name = 'VolumeNotFoundError'
  }
}

/** No such path in the volume. */
export class VolumePathNotFoundError extends VolumeError {
  constructor(message: string) {
    super(message)
    this.name = 'VolumePathNotFoundError'
  }
}

/** Parent of what goes wrong with secrets. */
export class SecretError extends Error implements ErrorDetails {
  statusCode?: number
  errorCode?: string
  endCause?: EndCause

  constructor(message: string) {
    super(message)
    this.name = 'SecretError'
  }
}

/** No such secret. */
export class SecretNotFoundError extends SecretError {
  constructor(message: string) {
    super(message)
    this.name = 'SecretNotFoundError'
  }
}

const END = /it ended at (\S+), (([a-z -]+?)(?::.*)?)$/s

/** Reads the cause of a sandbox's end out of a message of the server; undefined when it tells none. */
export function endCauseOf(message: string): EndCause | undefined {
  const end = END.exec(message)
  if (end) {
    const at = new Date(end[1]!)
    const cause: EndCause = { reason: end[3]!, message: end[2]! }
    if (!Number.isNaN(at.getTime())) cause.at = at
    return cause
  }
  if (/was not found: it is paused/.test(message)) return { reason: 'paused', message: 'it is paused' }
  return undefined
}

/** Gives an error what is known beside its message, and hands it back. */
export function detailed<E extends Error>(error: E, details: ErrorDetails & { cause?: unknown }): E {
  const target = error as E & ErrorDetails & { cause?: unknown }
  if (details.statusCode !== undefined && target.statusCode === undefined) target.statusCode = details.statusCode
  if (details.errorCode !== undefined) target.errorCode = details.errorCode
  const endCause = details.endCause ?? endCauseOf(error.message)
  if (endCause) target.endCause = endCause
  if (details.cause !== undefined) target.cause = details.cause
  return error
}
