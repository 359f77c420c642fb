// SPDX-License-Identifier: Apache-2.0
// Where this package differs from e2b 2.51.0 and @e2b/code-interpreter 2.8.0, each with its reason. The tests of names
// and types allow exactly these; docs/sdk-typescript.md shows the same table (reference.mjs writes it).

/** Members of stock classes that ours lack. */
export const members = {}

/** Types whose values can't be exchanged with the stock ones. */
export const types = {
  paths: 'routes of the API are not spelled out as types: ApiClient takes any path',
  components: 'schemas of the API are not spelled out as types',
  ApiClient: 'its methods take any path and give any data, see paths',
  McpServer: 'settings of the catalogue’s servers are not typed: the server decides which it has',
  McpServerName: 'any text, see McpServer',
  SandboxOpts: 'mcp is typed more loosely, see McpServer; everything else is taken',
  Stdout: 'branded types of two packages never fit each other',
  Stderr: 'see Stdout',
  PtyOutput: 'see Stdout',
}

/** What behaves differently. */
export const behaviour = {
  'Sandbox default template': '`code-interpreter-v1`, as in @e2b/code-interpreter; e2b alone takes `base`',
  'requestTimeoutMs of files.read and files.write':
    'longest silence instead of the whole transfer: large files are not cut',
  'files.write': 'one request of plain bytes for each file, eight at a time, instead of one form for all',
  'commands.list()': 'variables of commands that this package starts are left out, unless `privateEnvs: false`',
  retries: '429, 502, 503 and 504, and what the server asks for by `Should-Retry`; stock: 429 with Retry-After only',
  proxy: 'without effect: fetch takes its proxy from the runtime (NODE_USE_ENV_PROXY=1)',
  'errors of a sandbox that ended':
    'SandboxNotRunningError, a TimeoutError, with `endCause`; SandboxNotFoundError where a process ' +
    'was to start, as in stock',
  'errors of a connection that fails':
    'SandboxError that names the address, with the runtime’s error as `cause`; stock: the runtime’s TypeError',
  'git credentials':
    'given to git by a helper from private variables; stock writes them into the remote’s URL and back',
  'Template ignore patterns':
    'a match covers everything below it and `!` takes back, as .dockerignore does; stock: each path by itself',
  'Template file hashes':
    'sizes of directories do not count, so that the same files have the same hash on every file system',
  'Template.fromDockerfile':
    'quoted values of ENV, here-documents, exec forms and --chmod are read; ENTRYPOINT takes CMD as ' +
    'arguments; unknown instructions are refused',
  'Template archives': 'made in memory; stock: in a temporary file',
  defaultBuildLogger: 'plain lines, no running clock',
  'chart types and scales': 'exported as values too, not as types alone',
}
