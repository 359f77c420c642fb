// SPDX-License-Identifier: Apache-2.0
// Configuration of the MCP gateway in a sandbox.

/** A server that is fetched from a repository and started in the sandbox. */
export type GitHubMcpServer = {
  [key: `github/${string}`]: {
    /** Starts a server that talks by standard input and output. */
    runCmd: string
    installCmd?: string
    envs?: Record<string, string>
  }
}

/** Servers of the catalogue by their name, with their settings. */
export type CatalogueMcpServer = { [name: string]: Record<string, unknown> }

/** What `mcp` takes. */
export type McpServer = CatalogueMcpServer | GitHubMcpServer

/** Name of a server of the catalogue. */
export type McpServerName = string
