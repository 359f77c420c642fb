// SPDX-License-Identifier: Apache-2.0
// config.mjs - what the gateway is told to run: the object of the clients' option `mcp`, checked.
//
// A key names a server of catalogue.json, or `github/OWNER/REPO` with a command that starts a server in a clone of it.
// Every mistake is collected, so that the user reads all of them at once.
import { readFileSync } from 'node:fs'

export const catalogue = JSON.parse(readFileSync(new URL('catalogue.json', import.meta.url), 'utf8'))

const SERVERS_MAX = 32
const GITHUB = /^github\/([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))\/([A-Za-z0-9._-]{1,100})$/

export class ConfigError extends Error {}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)

/** OWNER and REPO of a key `github/OWNER/REPO`, or null. */
export function githubName(key) {
  const match = GITHUB.exec(key)
  return match && match[2] !== '.' && match[2] !== '..' ? { owner: match[1], repo: match[2] } : null
}

export function unknownKey(key) {
  return `there is no MCP server '${key}' here; the catalogue has ${Object.keys(catalogue).join(', ')}, ` +
    `and github/OWNER/REPO with runCmd starts any other`
}

/** Text variables of a setting `envs`. */
function variables(key, envs, mistakes) {
  if (envs === undefined || envs === null) return {}
  if (!isObject(envs)) {
    mistakes.push(`${key}: envs must be an object of strings`)
    return {}
  }
  const result = {}
  for (const [name, value] of Object.entries(envs)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) mistakes.push(`${key}: envs has '${name}', which is no variable's name`)
    else if (!['string', 'number', 'boolean'].includes(typeof value) || String(value).includes('\0'))
      mistakes.push(`${key}: the variable '${name}' of envs must be text`)
    else result[name] = String(value)
  }
  return result
}

function githubServer(key, settings, mistakes) {
  const name = githubName(key)
  if (!name) {
    mistakes.push(`'${key}' is not github/OWNER/REPO`)
    return null
  }
  const known = { runCmd: 'run', run_cmd: 'run', installCmd: 'install', install_cmd: 'install', envs: 'envs' }
  const server = { key, kind: 'github', ...name }
  for (const [setting, value] of Object.entries(settings)) {
    const role = known[setting]
    if (!role) mistakes.push(`${key}: there is no setting '${setting}'; it takes runCmd, installCmd and envs`)
    else if (role !== 'envs' && value !== null && typeof value !== 'string')
      mistakes.push(`${key}: ${setting} must be a command in a string`)
    else if (role !== 'envs' && value) server[role] = value
  }
  if (!server.run) mistakes.push(`${key}: runCmd is missing: the command that starts the server, speaking MCP on stdio`)
  server.env = variables(key, settings.envs, mistakes)
  return server
}

/** Words of a setting that becomes arguments: paths, each after the flag when there is one. */
function argumentsOf(key, entry, settings, mistakes) {
  const value = entry.arguments ? settings[entry.arguments] : undefined
  if (value === undefined || value === null) return []
  const words = Array.isArray(value) ? value : [value]
  if (!words.every((word) => typeof word === 'string' && word.startsWith('/') && !word.includes('\0'))) {
    mistakes.push(`${key}: ${entry.arguments} must be a list of absolute paths`)
    return []
  }
  return words.flatMap((word) => (entry.flag ? [entry.flag, word] : [word]))
}

function catalogueServer(key, settings, mistakes) {
  const entry = catalogue[key]
  const server = { key, kind: entry.npm ? 'npm' : 'pypi', package: entry.npm ?? entry.pypi, env: {} }
  for (const [setting, value] of Object.entries(settings)) {
    if (value === undefined || value === null || setting === entry.arguments) continue
    const variable = entry.settings && Object.hasOwn(entry.settings, setting) ? entry.settings[setting] : null
    const takes = [...Object.keys(entry.settings ?? {}), entry.arguments].filter(Boolean)
    if (!variable)
      mistakes.push(`${key}: there is no setting '${setting}'; it takes ${takes.join(', ') || 'none'}`)
    else if (!['string', 'number', 'boolean'].includes(typeof value) || String(value).includes('\0'))
      mistakes.push(`${key}: ${setting} must be text`)
    else server.env[variable] = String(value)
  }
  for (const setting of entry.needs ?? [])
    if (settings[setting] === undefined || settings[setting] === null || settings[setting] === '')
      mistakes.push(`${key}: the setting ${setting} is missing`)
  server.args = argumentsOf(key, entry, settings, mistakes)
  return server
}

/** The servers that a text of configuration asks for. Throws ConfigError with every mistake in it. */
export function readConfig(text) {
  let config
  try {
    config = JSON.parse(text)
  } catch (error) {
    throw new ConfigError(`the configuration is not JSON: ${error.message}`)
  }
  if (!isObject(config)) throw new ConfigError('the configuration must be an object: server name -> settings')
  const mistakes = []
  const entries = Object.entries(config)
  if (entries.length > SERVERS_MAX)
    mistakes.push(`${entries.length} servers are configured, at most ${SERVERS_MAX} are run`)
  const servers = entries.map(([key, given]) => {
    const settings = given ?? {}
    if (!isObject(settings)) mistakes.push(`${key}: the settings must be an object`)
    else if (key.startsWith('github/')) return githubServer(key, settings, mistakes)
    else if (Object.hasOwn(catalogue, key)) return catalogueServer(key, settings, mistakes)
    else mistakes.push(unknownKey(key))
    return null
  })
  if (mistakes.length) throw new ConfigError(mistakes.join('\n'))
  return servers
}
