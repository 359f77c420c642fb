// SPDX-License-Identifier: Apache-2.0
// Starts the MCP gateway of a new sandbox, loaded for sandboxes that have one.

import { detailed, SandboxError } from '../errors.js'
import { CommandExitError } from './handle.js'
import type { Sandbox } from './sandbox.js'
import { shellQuote } from './shell.js'

/** Starts the gateway and gives its token; a sandbox whose gateway does not start is ended. */
export async function startGateway(sandbox: Sandbox, mcp: object): Promise<string> {
  const token = crypto.randomUUID()
  try {
    await sandbox.commands.run(`mcp-gateway --config ${shellQuote(JSON.stringify(mcp))}`, {
      user: 'root',
      envs: { GATEWAY_ACCESS_TOKEN: token },
    })
    return token
  } catch (error) {
    await sandbox.kill().catch(() => undefined)
    if (!(error instanceof CommandExitError)) throw error
    throw detailed(new SandboxError(`Failed to start MCP gateway: ${error.stderr}`), { cause: error })
  }
}
