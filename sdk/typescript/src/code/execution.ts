// SPDX-License-Identifier: Apache-2.0
// What a cell gave: results, output, an error.

import type { ChartTypes } from './charts.js'

/** One piece of output. */
export class OutputMessage {
  constructor(
    readonly line: string,
    /** Microseconds since 1970. */
    readonly timestamp: number,
    /** True for standard error. */
    readonly error: boolean,
  ) {}

  toString(): string {
    return this.line
  }
}

/** The exception that ended a cell. */
export class ExecutionError {
  constructor(
    public name: string,
    public value: string,
    public traceback: string,
  ) {}
}

export type MIMEType = string

export type E2BData = {
  data: Record<string, unknown>
  chart: ChartTypes
}

export type RawData = { [key: MIMEType]: string } & E2BData

const FORMATS = ['html', 'markdown', 'svg', 'png', 'jpeg', 'pdf', 'latex', 'json', 'javascript', 'data'] as const
const KNOWN = new Set<string>(['text', ...FORMATS, 'chart', 'extra', 'raw', 'type', 'is_main_result'])

/** One result of a cell, in every form that the kernel gave. */
export class Result {
  readonly isMainResult: boolean
  readonly text?: string
  readonly html?: string
  readonly markdown?: string
  readonly svg?: string
  /** Base64. */
  readonly png?: string
  /** Base64. */
  readonly jpeg?: string
  /** Base64. */
  readonly pdf?: string
  readonly latex?: string
  readonly json?: string
  readonly javascript?: string
  /** Columns of a data frame. */
  readonly data?: Record<string, unknown>
  readonly chart?: ChartTypes
  /** Forms of kinds that have no field of their own. */
  readonly extra?: any
  /** Everything as it came. */
  readonly raw: RawData

  constructor(rawData: RawData, isMainResult: boolean) {
    const raw: Record<string, any> = { ...rawData }
    delete raw['type']
    delete raw['is_main_result']
    this.isMainResult = isMainResult
    this.raw = raw as RawData
    this.text = raw['text']
    this.html = raw['html']
    this.markdown = raw['markdown']
    this.svg = raw['svg']
    this.png = raw['png']
    this.jpeg = raw['jpeg']
    this.pdf = raw['pdf']
    this.latex = raw['latex']
    this.json = raw['json']
    this.javascript = raw['javascript']
    this.data = raw['data']
    this.chart = raw['chart']
    const extra: Record<string, any> = {}
    for (const key of Object.keys(raw)) if (!KNOWN.has(key)) extra[key] = raw[key]
    this.extra = extra
  }

  /** Names of the forms that are there. */
  formats(): string[] {
    return [...FORMATS.filter((format) => this[format]), ...Object.keys(this.extra ?? {})]
  }

  toJSON(): {
    extra?: any
    text: string | undefined
    html: string | undefined
    markdown: string | undefined
    svg: string | undefined
    png: string | undefined
    jpeg: string | undefined
    pdf: string | undefined
    latex: string | undefined
    json: string | undefined
    javascript: string | undefined
  } {
    const { text, html, markdown, svg, png, jpeg, pdf, latex, json, javascript } = this
    const all = { text, html, markdown, svg, png, jpeg, pdf, latex, json, javascript }
    return Object.keys(this.extra ?? {}).length ? { ...all, extra: this.extra } : all
  }
}

/** Output in the pieces in which it came. */
export type Logs = {
  stdout: string[]
  stderr: string[]
}

/** Everything that a cell gave. */
export class Execution {
  constructor(
    public results: Result[] = [],
    public logs: Logs = { stdout: [], stderr: [] },
    public error?: ExecutionError | undefined,
    public executionCount?: number | undefined,
  ) {}

  /** Text of the main result. */
  get text(): string | undefined {
    return this.results.find((result) => result.isMainResult)?.text
  }

  toJSON(): { results: Result[]; logs: Logs; error: ExecutionError | undefined } {
    return { results: this.results, logs: this.logs, error: this.error }
  }
}

/** An event of a cell that runs. */
export type ExecutionEvent =
  | { type: 'stdout'; text: string; message: OutputMessage }
  | { type: 'stderr'; text: string; message: OutputMessage }
  | { type: 'result'; result: Result }
  | { type: 'error'; error: ExecutionError }
  | { type: 'count'; executionCount: number }

interface Line {
  type: string
  text: string
  name: string
  value: string
  traceback: string
  is_main_result: boolean
  execution_count: number
}

/** Enters one line of the server's stream into an execution; undefined for lines that say nothing to callers. */
export function enter(execution: Execution, line: string): ExecutionEvent | undefined {
  const event = JSON.parse(line) as Line
  switch (event.type) {
    case 'stdout':
    case 'stderr': {
      const { type, text } = event
      execution.logs[type].push(text)
      return { type, text, message: new OutputMessage(text, Date.now() * 1000, type === 'stderr') }
    }
    case 'result': {
      const result = new Result(event as unknown as RawData, event.is_main_result)
      execution.results.push(result)
      return { type: 'result', result }
    }
    case 'error': {
      const error = new ExecutionError(event.name, event.value, event.traceback)
      execution.error = error
      return { type: 'error', error }
    }
    case 'number_of_executions':
      execution.executionCount = event.execution_count
      return { type: 'count', executionCount: event.execution_count }
    default:
      return undefined
  }
}
