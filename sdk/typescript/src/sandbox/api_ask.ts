// SPDX-License-Identifier: Apache-2.0
// What all calls about sandboxes have in common.

import type { ConnectionOpts } from '../config.js'
import { detailed, SandboxNotFoundError } from '../errors.js'
import { type ApiAnswer, apiError, type ApiRequest, ask } from '../net/api.js'

/** Asks the API about one sandbox; throws what is not a success. */
export async function askOf<T>(id: string, opts: ConnectionOpts | undefined, request: ApiRequest): Promise<T> {
  const answer = await ask<T>(opts, request)
  if (answer.problem) throw problemOf(id, answer)
  return answer.data as T
}

export function problemOf(id: string, answer: ApiAnswer<unknown>): Error {
  if (answer.status !== 404) return apiError(answer)
  const text = `Sandbox ${id} not found: ${answer.problem?.message ?? ''}`
  return detailed(new SandboxNotFoundError(text), { statusCode: 404 })
}

export const pathOf = (id: string, rest = ''): string => `/sandboxes/${encodeURIComponent(id)}${rest}`
