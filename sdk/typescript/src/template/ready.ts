// SPDX-License-Identifier: Apache-2.0
// Commands that tell when a template's service is ready.

import { shellQuote } from '../sandbox/shell.js'

/** A shell command that succeeds when the template is ready. */
export class ReadyCmd {
  constructor(private readonly cmd: string) {}

  getCmd(): string {
    return this.cmd
  }
}

/** Ready when something listens on this port. */
export function waitForPort(port: number): ReadyCmd {
  return new ReadyCmd(`[ -n "$(ss -Htuln sport = :${port})" ]`)
}

/** Ready when this URL answers with this status. */
export function waitForURL(url: string, statusCode = 200): ReadyCmd {
  return new ReadyCmd(`curl -s -o /dev/null -w "%{http_code}" ${shellQuote(url)} | grep -q "${statusCode}"`)
}

/** Ready when a process of this name runs. */
export function waitForProcess(processName: string): ReadyCmd {
  return new ReadyCmd(`pgrep ${shellQuote(processName)} > /dev/null`)
}

/** Ready when this file exists. */
export function waitForFile(filename: string): ReadyCmd {
  return new ReadyCmd(`[ -f ${shellQuote(filename)} ]`)
}

/** Ready after this many ms, rounded down to seconds. */
export function waitForTimeout(timeout: number): ReadyCmd {
  return new ReadyCmd(`sleep ${Math.max(1, Math.floor(timeout / 1000))}`)
}
