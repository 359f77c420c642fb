// SPDX-License-Identifier: Apache-2.0
// Every call that waits for the server is ended by its signal, and by requestTimeoutMs. A method that is in neither
// table fails the first test.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as cloche from '../../dist/index.js'
import { boxAt, rejection, serve } from '../support/server.mjs'

const { Sandbox, Secret, Template, TemplateBase, Volume } = cloche
const volumeAt = (connection) =>
  Object.assign(new Volume('vol1', 'v', 't'), { connection: new cloche.ConnectionConfig(connection) })
const template = () => Template().fromTemplate('base')

// What waits, with its arguments before the options.
const WAITS = {
  'Sandbox static': {
    create: ['base'], connect: ['i1'], fork: ['i1'], kill: ['i1'], getInfo: ['i1'], getFullInfo: ['i1'],
    getMetrics: ['i1'], getLogs: ['i1'], getEvents: ['i1'], setTimeout: ['i1', 1000], updateNetwork: ['i1', {}],
    pause: ['i1'], betaPause: ['i1'], createSnapshot: ['i1'], deleteSnapshot: ['s1'],
  },
  Sandbox: {
    connect: [], resume: [], fork: [], isRunning: [], setTimeout: [1000], updateNetwork: [{}], kill: [], pause: [],
    betaPause: [], createSnapshot: [], getInfo: [], getMetrics: [], getLogs: [], getEvents: [], runCode: ['1'],
    interrupt: [], createCodeContext: [], removeCodeContext: ['c1'], listCodeContexts: [], restartCodeContext: ['c1'],
    getMcpToken: [],
  },
  files: {
    read: ['a'], write: ['a', 'x'], writeFiles: [[{ path: 'a', data: 'x' }]], list: ['a'], makeDir: ['a'],
    rename: ['a', 'b'], remove: ['a'], exists: ['a'], getInfo: ['a'], watchDir: ['a', () => {}],
  },
  commands: {
    list: [], sendStdin: [1, 'x'], streamInput: [1, ['x']], closeStdin: [1], kill: [1], connect: [1], run: ['true'],
  },
  pty: { create: [], connect: [1], sendInput: [1, 'x'], streamInput: [1, ['x']], resize: [1, { cols: 1, rows: 1 }],
    kill: [1] },
  git: {
    clone: ['https://a.invalid/b.git'], init: ['a'], remoteAdd: ['a', 'o', 'https://a.invalid/b.git'],
    remoteGet: ['a', 'o'], status: ['a'], branches: ['a'], createBranch: ['a', 'b'], checkoutBranch: ['a', 'b'],
    deleteBranch: ['a', 'b'], add: ['a'], commit: ['a', 'm'], reset: ['a'], restore: ['a'], push: ['a'], pull: ['a'],
    setConfig: ['k', 'v'], getConfig: ['k'], dangerouslyAuthenticate: [], configureUser: ['n', 'e'],
  },
  'Volume static': { create: ['v'], connect: ['v1'], getInfo: ['v1'], list: [], destroy: ['v1'] },
  Volume: {
    list: ['a'], makeDir: ['a'], getInfo: ['a'], exists: ['a'], updateMetadata: ['a', { mode: 0o644 }],
    readFile: ['a'], writeFile: ['a', 'x'], remove: ['a'],
  },
  'Secret static': { create: ['n', 'v'], update: ['n', 'v'], getInfo: ['n'], exists: ['n'], destroy: ['n'] },
  'Template static': {
    build: [template(), 't'], buildInBackground: [template(), 't'],
    getBuildStatus: [{ templateId: 't', buildId: 'b' }], exists: ['t'], aliasExists: ['t'], assignTags: ['t', 'x'],
    removeTags: ['t', 'x'], getTags: ['t'],
  },
}
const MORE = { // Options that a call does not do without.
  'pty create': { cols: 80, rows: 24, onData: () => {} }, 'git restore': { paths: ['a'] },
  'git dangerouslyAuthenticate': { username: 'u', password: 'p' },
}
const AT_ONCE = {
  'Sandbox static': ['list', 'listSnapshots', 'resolveOpts', 'createSandbox', 'forkSandbox', 'connectSandbox'],
  Sandbox: ['getHost', 'listSnapshots', 'getMcpUrl', 'uploadUrl', 'downloadUrl', 'startMcp'],
  'Volume static': ['made', 'resolveOpts'],
  'Secret static': ['list', 'fill', 'iamToken', 'resolveOpts'],
  'Template static': ['toJSON', 'toDockerfile', 'buildArgs', 'resolveOpts'],
}

function places(url) {
  const connection = { apiUrl: url, sandboxUrl: url, apiKey: 'k', retries: 0 }
  const box = boxAt(url)
  const kept = { Sandbox: box, files: box.files, commands: box.commands, pty: box.pty, git: box.git }
  const statics = { 'Sandbox static': Sandbox, 'Volume static': Volume, 'Secret static': Secret,
    'Template static': TemplateBase ?? Template }
  return { connection, things: { ...kept, Volume: volumeAt({ ...connection, volumeApiUrl: url }), ...statics } }
}

function methods(thing) {
  const found = new Set()
  const last = typeof thing === 'function' ? Function.prototype : Object.prototype
  for (let at = typeof thing === 'function' ? thing : Object.getPrototypeOf(thing); at && at !== last; ) {
    for (const [name, one] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (typeof one.value === 'function' && !['constructor', 'prototype'].includes(name)) found.add(name)
    }
    at = Object.getPrototypeOf(at)
  }
  return found
}

test('every method is known here', () => {
  const { things } = places('http://127.0.0.1:1')
  for (const [place, thing] of Object.entries(things)) {
    const known = new Set([...Object.keys(WAITS[place]), ...(AT_ONCE[place] ?? [])])
    const unknown = [...methods(thing)].filter((name) => !known.has(name) && !/^[_#]/.test(name))
    assert.deepEqual(unknown, [], place)
    assert.deepEqual(Object.keys(WAITS[place]).filter((name) => typeof thing[name] !== 'function'), [], place)
  }
})

for (const place of Object.keys(WAITS)) {
  test(`a signal ends every call of ${place}`, async (t) => {
    const { url } = await serve(t, () => new Promise(() => {}))
    const { connection, things } = places(url)
    const reason = new Error('enough')
    const calls = Object.entries(WAITS[place]).map(async ([name, given]) => {
      const controller = new AbortController()
      setTimeout(() => controller.abort(reason), 100)
      const opts = { ...connection, ...MORE[`${place} ${name}`], requestTimeoutMs: 20_000, signal: controller.signal }
      assert.equal(await rejection(things[place][name](...given, opts)), reason, `${place}.${name}`)
    })
    await Promise.all(calls)
  })
}
