// SPDX-License-Identifier: Apache-2.0
// main.mjs - the command mcp-gateway: checks a configuration, starts the gateway's process and waits until it works.
//
// The clients run it as root with GATEWAY_ACCESS_TOKEN in its environment and take exit status 0 for "ready to be
// used", so it returns only then; the gateway goes on in a session of its own that holds nothing of this command's.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { catalogue, ConfigError, githubName, readConfig, unknownKey } from './config.mjs'
import { fetchServer } from './fetch.mjs'

const START_MS = 55_000
const TOKEN = '/etc/mcp-gateway/.token'
const LOG = '/var/log/mcp-gateway/gateway.log'
const PID = '/run/mcp-gateway.pid'
const GATEWAY = fileURLToPath(new URL('gateway.mjs', import.meta.url))

const USAGE = `usage: mcp-gateway --config JSON
       mcp-gateway pull NAME...
       mcp-gateway list

Runs MCP servers behind one address: http://localhost:50005/mcp, streamable HTTP, every request with the
bearer token of $GATEWAY_ACCESS_TOKEN (a new one without it), which is kept in ${TOKEN}.

  --config JSON   an object: server -> settings. A server is one of the catalogue, or github/OWNER/REPO
                  with runCmd (starts it, MCP on stdio), installCmd and envs. Ends when all servers answer;
                  the gateway goes on. A gateway that runs already is replaced.
  pull NAME...    fetches ahead what servers need, so that they start without the network
  list            the catalogue

Log: ${LOG}
`

function fail(message, status = 1) {
  process.stderr.write(`mcp-gateway: ${message}\n`)
  process.exit(status)
}

function needSdk() {
  if (!existsSync(new URL('node_modules/@modelcontextprotocol/sdk', import.meta.url)))
    fail('this template was built without npm packages (--debian-only), so it has no MCP SDK; build it again with them')
}

/** Ends the gateway that runs, if one does. */
async function replaceOld() {
  let pid
  try {
    pid = Number(readFileSync(PID, 'utf8'))
    if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(GATEWAY)) return
  } catch {
    return
  }
  process.kill(pid, 'SIGTERM')
  for (let i = 0; i < 50 && existsSync(`/proc/${pid}`); i++) await sleep(100)
  if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGKILL')
}

/** First line that the gateway writes on its descriptor 3; null when it ends without one. */
function status(child) {
  return new Promise((resolve) => {
    let text = ''
    child.stdio[3].on('data', (chunk) => {
      text += chunk
      if (text.includes('\n')) resolve(JSON.parse(text.slice(0, text.indexOf('\n'))))
    })
    child.stdio[3].on('end', () => resolve(null))
  })
}

async function start(text) {
  let servers
  try {
    servers = readConfig(text)
  } catch (error) {
    if (error instanceof ConfigError) fail(error.message, 2)
    throw error
  }
  needSdk()
  await replaceOld()
  const token = process.env.GATEWAY_ACCESS_TOKEN || randomUUID()
  mkdirSync('/etc/mcp-gateway', { recursive: true, mode: 0o700 })
  mkdirSync('/var/log/mcp-gateway', { recursive: true })
  rmSync(TOKEN, { force: true })
  writeFileSync(TOKEN, token, { mode: 0o600 })
  const log = openSync(LOG, 'a')
  const env = { ...process.env }
  delete env.GATEWAY_ACCESS_TOKEN
  const child = spawn(process.execPath, [GATEWAY], {
    cwd: '/',
    env,
    detached: true,
    stdio: ['pipe', log, log, 'pipe'],
  })
  child.stdin.end(JSON.stringify({ servers, token }))
  const limit = sleep(START_MS, { late: true })
  const said = await Promise.race([status(child), limit])
  if (said?.ready) process.exit(0)
  if (said?.late) {
    process.kill(-child.pid, 'SIGKILL')
    fail(`the servers are not up after ${START_MS / 1000} s; ${LOG} says how far they came`)
  }
  fail(said?.error ?? `the gateway ended at once; ${LOG} says why`)
}

/** A server of that name without settings. */
function pulled(key) {
  const name = githubName(key)
  if (name) return { key, kind: 'github', ...name }
  const { npm, pypi } = catalogue[key]
  return { key, kind: npm ? 'npm' : 'pypi', package: npm ?? pypi, args: [] }
}

async function pull(names) {
  if (!names.length) fail('pull needs the name of a server', 2)
  const mistakes = names.filter((name) => !Object.hasOwn(catalogue, name) && !githubName(name)).map(unknownKey)
  if (mistakes.length) fail(mistakes.join('\n'), 2)
  for (const name of names) {
    try {
      await fetchServer(pulled(name), { log: (text) => process.stdout.write(`${text}\n`) })
      process.stdout.write(`${name} is here\n`)
    } catch (error) {
      fail(`${name}: ${error.message}`)
    }
  }
}

function list() {
  for (const [name, entry] of Object.entries(catalogue))
    process.stdout.write(`${name.padEnd(20)} ${entry.npm ? 'npm ' : 'PyPI'} ${entry.npm ?? entry.pypi}\n`)
}

const [word, ...rest] = process.argv.slice(2)
if (word === '--config' && rest.length === 1) await start(rest[0])
else if (word?.startsWith('--config=') && !rest.length) await start(word.slice('--config='.length))
else if (word === 'pull') await pull(rest)
else if (word === 'list' && !rest.length) list()
else if (word === '--help' || word === '-h') process.stdout.write(USAGE)
else fail(`${word === undefined ? 'nothing to do' : `'${[word, ...rest].join(' ')}' is not understood`}\n${USAGE}`, 2)
