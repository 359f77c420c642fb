// SPDX-License-Identifier: Apache-2.0
// fetch.mjs - what a server needs is brought into the sandbox: a clone, a package of npm, a package of PyPI.
//
// What is there is not fetched again, so that a template made with `mcp-gateway pull` starts without the network. Each
// is made aside and renamed: an interrupted fetch leaves nothing that looks whole.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const HOME = '/opt/mcp-gateway'
const GLOBAL = '/usr/local/lib/node_modules'
const PYTHON = '/usr/local/lib'
const KEPT = 8192 // of a program's output, for the message

/** Runs a program to its end; its output goes to `log` line by line. Throws with the end of its output. */
export function run(command, args, { cwd, env, log, signal } = {}) {
  return new Promise((resolve, reject) => {
    const stdio = ['ignore', 'pipe', 'pipe']
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio, signal })
    let tail = ''
    const take = (chunk) => {
      tail = (tail + chunk).slice(-KEPT)
      log?.(String(chunk).trimEnd())
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    child.on('error', (error) => reject(error))
    child.on('close', (code, by) => {
      if (code === 0) resolve()
      else {
        const end = tail.trim().split('\n').slice(-8).join('\n')
        reject(new Error(`${command} ended with ${by ?? `status ${code}`}: ${end}`))
      }
    })
  })
}

/** Makes the directory `place` by `make(aside)`, unless it is there. */
async function once(place, make) {
  if (existsSync(place)) return
  const aside = `${place}.making-${process.pid}`
  mkdirSync(path.dirname(place), { recursive: true })
  rmSync(aside, { recursive: true, force: true })
  try {
    await make(aside)
    renameSync(aside, place)
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}

export const cloneOf = (server) => path.join(HOME, 'github', server.owner, server.repo)

const packageName = (spec) => spec.replace(/(.)@[^@/]+$/, '$1')
const packageVersion = (spec) => /.@([^@/]+)$/.exec(spec)?.[1]
const pypiName = (spec) => spec.split('==')[0]

/** Where npm's package of that version is installed, by the template or by us. */
function npmPlace(spec) {
  const name = packageName(spec)
  const own = path.join(HOME, 'npm', spec.replaceAll('/', '+'), 'node_modules', name)
  const all = path.join(GLOBAL, name)
  try {
    if (JSON.parse(readFileSync(path.join(all, 'package.json'), 'utf8')).version === packageVersion(spec)) return all
  } catch {
    // not installed for everyone
  }
  return own
}

/** The program that an installed package of npm starts. */
function npmProgram(place, spec) {
  const manifest = JSON.parse(readFileSync(path.join(place, 'package.json'), 'utf8'))
  const bins = typeof manifest.bin === 'string' ? { [manifest.name]: manifest.bin } : manifest.bin ?? {}
  const short = packageName(spec).split('/').pop()
  const bin = bins[short] ?? Object.values(bins)[0]
  if (!bin) throw new Error(`${spec} has no program`)
  return path.join(place, bin)
}

async function fetchNpm(spec, options) {
  const place = npmPlace(spec)
  if (existsSync(place)) return place
  await once(path.join(HOME, 'npm', spec.replaceAll('/', '+')), async (aside) => {
    mkdirSync(aside, { recursive: true })
    writeFileSync(path.join(aside, 'package.json'), '{"private": true}')
    await run('npm', ['install', '--no-audit', '--no-fund', '--prefix', aside, spec], options)
  })
  return place
}

/** Whether that version of a package of PyPI is installed for everyone, by the template. */
function pypiForAll(spec) {
  const record = `${spec.replace(/-/g, '_').replace('==', '-')}.dist-info`
  const versions = readdirSync(PYTHON).filter((name) => name.startsWith('python3.'))
  return versions.some((version) => existsSync(path.join(PYTHON, version, 'dist-packages', record)))
}

// A virtual environment holds its own path, so it is made in its place and marked when it is whole.
async function fetchPypi(spec, options) {
  if (pypiForAll(spec)) return '/usr/local'
  const place = path.join(HOME, 'pypi', spec)
  const whole = path.join(place, '.whole')
  if (existsSync(whole)) return place
  rmSync(place, { recursive: true, force: true })
  mkdirSync(path.dirname(place), { recursive: true })
  await run('python3', ['-m', 'venv', place], options)
  await run(path.join(place, 'bin/pip'), ['install', '-q', '--disable-pip-version-check', spec], options)
  writeFileSync(whole, '')
  return place
}

function fetchClone(server, options) {
  return once(cloneOf(server), async (aside) => {
    const url = `https://github.com/${server.owner}/${server.repo}`
    const env = { GIT_TERMINAL_PROMPT: '0' } // a private one fails instead of asking
    await run('git', ['clone', '-q', '--depth', '1', '--', url, aside], { ...options, env })
  })
}

/** Brings what the server needs. Gives the command that starts it: { command, args, env, cwd }. */
export async function fetchServer(server, options) {
  if (server.kind === 'npm') {
    const program = npmProgram(await fetchNpm(server.package, options), server.package)
    return { command: process.execPath, args: [program, ...server.args], env: server.env, cwd: '/root' }
  }
  if (server.kind === 'pypi') {
    const program = path.join(await fetchPypi(server.package, options), 'bin', pypiName(server.package))
    return { command: program, args: server.args, env: server.env, cwd: '/root' }
  }
  await fetchClone(server, options)
  const cwd = cloneOf(server)
  if (server.install)
    await run('/bin/bash', ['-l', '-c', server.install], { ...options, cwd, env: server.env })
  return { command: '/bin/bash', args: ['-l', '-c', server.run], env: server.env, cwd }
}
