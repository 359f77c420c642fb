// SPDX-License-Identifier: Apache-2.0
// Lines of a build's log.

export type LogEntryLevel = 'debug' | 'info' | 'warn' | 'error'

const LEVELS: LogEntryLevel[] = ['debug', 'info', 'warn', 'error']
// Colours and other sequences that are meant for a terminal.
const ANSI = new RegExp(
  '\\u001b(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\\u0007\\u001b]*(?:\\u0007|\\u001b\\\\)|[@-Z\\\\-_])',
  'g',
)

export class LogEntry {
  readonly message: string

  constructor(
    readonly timestamp: Date,
    readonly level: LogEntryLevel,
    message: string,
  ) {
    this.message = message.replace(ANSI, '')
  }

  toString(): string {
    return `[${this.timestamp.toISOString()}] [${this.level}] ${this.message}`
  }
}

/** The build begins. */
export class LogEntryStart extends LogEntry {
  constructor(timestamp: Date, message: string) {
    super(timestamp, 'debug', message)
  }
}

/** The build is over. */
export class LogEntryEnd extends LogEntry {
  constructor(timestamp: Date, message: string) {
    super(timestamp, 'debug', message)
  }
}

/** Prints a build's log with the seconds since its start. */
export function defaultBuildLogger(options?: { minLevel?: LogEntryLevel }): (logEntry: LogEntry) => void {
  const least = LEVELS.indexOf(options?.minLevel ?? 'info')
  let began = Date.now()
  return (entry) => {
    if (entry instanceof LogEntryStart) began = Date.now()
    if (entry instanceof LogEntryStart || entry instanceof LogEntryEnd || LEVELS.indexOf(entry.level) < least) return
    const seconds = `${((Date.now() - began) / 1000).toFixed(1)}s`.padEnd(6)
    console.log(
      `${seconds}| ${entry.timestamp.toLocaleTimeString()} ${entry.level.toUpperCase().padEnd(5)} ${entry.message}`,
    )
  }
}
