// SPDX-License-Identifier: Apache-2.0
// player.mjs MODULE <SCENARIOS >RESULTS - plays scenarios with a TypeScript SDK; see README.md and player.py. Names of
// the scenarios are Python's; here they become camelCase, and what this SDK takes in order is taken from the options.
import fs from 'node:fs'
import { pathToFileURL } from 'node:url'

const PATIENCE_MS = 20_000
const LIFETIME_MS = 300_000

const moduleName = process.argv[2]
const sdk = await import(moduleName.startsWith('/') ? pathToFileURL(moduleName).href : moduleName)
const unique = process.env.UNIQUE

// What a call takes before its options.
const ORDER = {
  'run_code': ['code'],
  'set_timeout': ['timeout'],
  'get_host': ['port'],
  'update_network': ['network'],
  'remove_code_context': ['context'],
  'restart_code_context': ['context'],
  'download_url': ['path'],
  'upload_url': ['path'],
  'files.write': ['path', 'data'],
  'files.read': ['path'],
  'files.list': ['path'],
  'files.exists': ['path'],
  'files.get_info': ['path'],
  'files.make_dir': ['path'],
  'files.remove': ['path'],
  'files.rename': ['old_path', 'new_path'],
  'commands.run': ['cmd'],
  'commands.kill': ['pid'],
  'commands.connect': ['pid'],
  'commands.send_stdin': ['pid', 'data'],
  'git.init': ['path'],
  'git.configure_user': ['name', 'email'],
  'git.status': ['path'],
  'git.add': ['path'],
  'git.commit': ['path', 'message'],
  'git.create_branch': ['path', 'branch'],
  'git.checkout_branch': ['path', 'branch'],
  'git.delete_branch': ['path', 'branch'],
  'git.branches': ['path'],
  'git.remote_add': ['path', 'name', 'url'],
  'git.remote_get': ['path', 'name'],
  'git.get_config': ['key'],
  'git.push': ['path'],
  'Sandbox.create': ['template'],
  'Sandbox.connect': ['sandbox_id'],
  'Sandbox.kill': ['sandbox_id'],
  'Sandbox.get_info': ['sandbox_id'],
  'Sandbox.delete_snapshot': ['snapshot_id'],
  'Template.exists': ['name'],
  'Template.assign_tags': ['target_name', 'tags'],
  'Template.get_tags': ['template_id'],
  'Template.remove_tags': ['name', 'tags'],
  'Volume.create': ['name'],
  'Volume.get_info': ['volume_id'],
  'Volume.destroy': ['volume_id'],
  'write_file': ['path', 'data'],
  'read_file': ['path'],
  'list': ['path'],
  'make_dir': ['path'],
  'exists': ['path'],
  'remove': ['path'],
  'update_metadata': ['path'],
  'Secret.create': ['name', 'value'],
  'Secret.get_info': ['secret'],
  'Secret.exists': ['secret'],
  'Secret.update': ['secret', 'value'],
  'Secret.destroy': ['secret'],
}
// Of these the second thing is an object of metadata, not options.
const METADATA_SECOND = new Set(['update_metadata'])

let saved = {}
const shared = {}

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase())
const snake = (name) => name.replace(/[A-Z]+/g, (letters) => '_' + letters.toLowerCase())

function resolve(value) {
  if (typeof value === 'string') {
    if (!value.startsWith('$')) return value.replaceAll('{unique}', unique)
    const [first, ...rest] = value.slice(1).split('.')
    return rest.reduce((found, name) => found[/^\d+$/.test(name) ? Number(name) : camel(name)], saved[first])
  }
  if (Array.isArray(value)) return value.map(resolve)
  if (value && value.constructor === Object) {
    if (Object.keys(value).join() === 'bytes') return Uint8Array.from(Buffer.from(value.bytes, 'base64')).buffer
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, resolve(each)]))
  }
  return value
}

// Keys of users' own maps stay as they are.
const MAPS = new Set(['metadata', 'envs', 'volume_mounts'])
function options(given) {
  const out = {}
  for (const [name, value] of Object.entries(given)) {
    const inside = value && value.constructor === Object && !MAPS.has(name)
    if (name === 'timeout' || name === 'request_timeout') out[camel(name) + 'Ms'] = value * 1000
    else out[camel(name)] = inside ? options(value) : value
  }
  return out
}

async function settle(value) {
  value = await value
  if (value && typeof value.nextItems === 'function') return value.nextItems()
  if (value instanceof ReadableStream) return new Uint8Array(await new Response(value).arrayBuffer())
  return value
}

function target(step) {
  const parts = step.do.split('.')
  let place = /^[A-Z]/.test(parts[0]) ? sdk[parts.shift()] : resolve('$' + (step.on ?? 'box'))
  for (const name of parts.slice(0, -1)) place = place[camel(name)]
  const name = camel(parts.at(-1))
  if (typeof place[name] !== 'function') throw new Error(`no ${step.do}`)
  return place[name].bind(place)
}

async function call(step, given) {
  const told = []
  const order = ORDER[step.do] ?? []
  const first = order.map((name) => given[name])
  if (step.do === 'set_timeout') first[0] *= 1000
  if (step.do === 'update_network') first[0] = options(first[0])
  if (step.do === 'Sandbox.create' && first[0] === undefined) first.shift()
  const rest = options(Object.fromEntries(Object.entries(given).filter(([name]) => !order.includes(name))))
  const heard = { stdout: 'onStdout', stderr: 'onStderr', result: 'onResult', error: 'onError' }
  for (const name of step.streamed ?? []) rest[heard[name]] = (said) => void told.push([name, plain(said)])
  const more = Object.keys(rest).length || METADATA_SECOND.has(step.do) ? [rest] : []
  const value = await settle(target(step)(...first, ...more))
  return step.streamed ? { value, told } : value
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms))

const OCTETS = { 'content-type': 'application/octet-stream' }

// What the SDKs do in ways of their own.
const SPECIAL = {
  read: (_, given) => given.of,
  write_files: (_, given) => saved.box.files.write(given.files),
  async fetch(_, given) {
    const answer = await fetch(given.url, given.body ? { method: 'POST', body: given.body, headers: OCTETS } : {})
    const body = await answer.text()
    return { status: answer.status, body: given.body || answer.status >= 400 ? '' : body.slice(0, 200) }
  },
  async watch(step, given) {
    const events = []
    const { path, until, ...rest } = given
    const handle = await saved.box.files.watchDir(path, (event) => void events.push(event), options(rest))
    for (const each of step.steps) await play(each)
    const end = Date.now() + PATIENCE_MS
    while (Date.now() < end && !events.some((event) => event.name === until)) await pause(20)
    await handle.stop()
    const others = events.filter((event) => event.name !== until)
    const said = new Set(others.map((event) => JSON.stringify([event.name, event.type])))
    return [...said].sort().map((text) => JSON.parse(text))
  },
  async terminal(_, given) {
    let text = ''
    const decoder = new TextDecoder()
    const { pty } = saved.box
    const handle = await pty.create({ rows: 24, cols: 80, onData: (data) => void (text += decoder.decode(data)) })
    await pty.resize(handle.pid, { rows: 30, cols: 100 })
    await pty.sendInput(handle.pid, new TextEncoder().encode(given.type))
    let ended = null
    try {
      await handle.wait()
    } catch (error) {
      ended = toldError(error)
    }
    return { found: text.includes(given.until), ended }
  },
  started: (_, given) => {
    const { cmd, ...rest } = given
    return saved.box.commands.run(cmd, { background: true, ...options(rest) })
  },
  wait: (_, given) => given.of.wait(),
  stop: (_, given) => given.of.kill(),
  type: (_, given) => saved.box.commands.sendStdin(given.to.pid, given.text),
  end_input: (_, given) => saved.box.commands.closeStdin(given.to.pid),
  listed: async (_, given) => (await saved.box.commands.list()).filter((each) => each.pid === given.of.pid),
  connected: (_, given) => saved.box.commands.connect(given.of.pid),
  async measured() {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await pause(100)) {
      const found = await saved.box.getMetrics()
      if (found.length) return found.slice(0, 1)
    }
    return []
  },
  listed_boxes: (_, given) => sdk.Sandbox.list({ query: given }).nextItems(),
  async build(_, given) {
    const lines = []
    const recipe = sdk.Template().fromTemplate(given.base).runCmd(given.run)
    const info = await sdk.Template.build(recipe, given.name, {
      tags: given.tags, cpuCount: 1, memoryMB: 512, onBuildLogs: (line) => void lines.push(line),
    })
    return { info, log: [...new Set(lines.map((line) => line.level).filter((level) => level !== 'debug'))].sort() }
  },
  async recipe(_, given) {
    const recipe = sdk.Template().fromTemplate(given.base).runCmd(given.run)
    recipe.setWorkdir('/tmp').setUser('user').setStartCmd('sleep 1', 'true')
    return JSON.parse(await sdk.Template.toJSON(recipe, false))
  },
}

// ---- values as plain data ----

const HANDLES = new Set(['Sandbox', 'CommandHandle', 'WatchHandle', 'Volume', 'Secret'])

function toldError(error) {
  const bases = []
  for (let kind = error?.constructor; kind && kind.name; kind = Object.getPrototypeOf(kind)) bases.push(kind.name)
  // A subclass that a bundler renamed still has its own name.
  if (error?.name && !bases.includes(error.name)) bases.unshift(error.name)
  const fields = {}
  for (const name of ['exitCode', 'stdout', 'stderr', 'error', 'statusCode'])
    if (error && error[name] !== undefined) fields[snake(name)] = plain(error[name])
  return { is: error?.name ?? bases[0], bases, fields, message: String(error?.message ?? error).slice(0, 300) }
}

function plain(value) {
  if (value === undefined || value === null) return null
  if (['boolean', 'number', 'string'].includes(typeof value)) return value
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'function') return undefined
  if (value instanceof ArrayBuffer) return { bytes: Buffer.from(value).toString('base64') }
  if (ArrayBuffer.isView(value)) return plain(value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength))
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(plain)
  const name = value.constructor?.name ?? 'Object'
  if (typeof value.wait === 'function') return { is: 'CommandHandle' }
  if (HANDLES.has(name)) return { is: name }
  const out = name === 'Object' ? {} : { is: name }
  // What is undefined is as good as absent, and so is null.
  for (const [key, each] of Object.entries(value))
    if (typeof each !== 'function' && each !== undefined && each !== null) out[snake(key)] = plain(each)
  for (let kind = Object.getPrototypeOf(value); kind && kind !== Object.prototype; kind = Object.getPrototypeOf(kind))
    for (const [key, how] of Object.entries(Object.getOwnPropertyDescriptors(kind)))
      if (how.get && !key.startsWith('_') && value[key] !== undefined) out[snake(key)] = plain(value[key])
  if (typeof value.formats === 'function') out['formats()'] = [...value.formats()].sort()
  return out
}

// ---- scenarios ----

async function play(step) {
  const kept = new Set(['do', 'on', 'as', 'streamed', 'steps'])
  const given = resolve(Object.fromEntries(Object.entries(step).filter(([name]) => !kept.has(name))))
  const value = await (SPECIAL[step.do] ?? call)(step, given)
  if (step.as) saved[step.as] = value
  return value
}

const late = (ms) => new Promise((_, fail) => setTimeout(() => fail(new Error(`no answer in ${ms} ms`)), ms).unref())

async function scenario(one) {
  const results = []
  saved = {}
  if (one.box) {
    shared[one.box] ??= await sdk.Sandbox.create(one.box, { timeoutMs: LIFETIME_MS })
    saved.box = shared[one.box]
  }
  for (const step of one.steps) {
    try {
      results.push({ value: plain(await Promise.race([play(step), late(60_000)])) ?? null })
    } catch (error) {
      results.push({ raised: toldError(error) })
    }
  }
  return results
}

process.on('unhandledRejection', (error) => console.error('unhandled', error))
for (const one of JSON.parse(fs.readFileSync(0, 'utf8'))) {
  const began = Date.now()
  let results
  try {
    results = await scenario(one)
  } catch (error) {
    results = [{ raised: toldError(error) }]
  }
  const text = JSON.stringify({ name: one.name, results, seconds: (Date.now() - began) / 1000 })
  // A pipe takes what it has room for: the rest is written again.
  let rest = Buffer.from(text.replaceAll(unique, '{unique}') + '\n')
  while (rest.length) {
    try {
      rest = rest.subarray(fs.writeSync(1, rest))
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}
for (const box of Object.values(shared)) await box.kill()
process.exit(0)
