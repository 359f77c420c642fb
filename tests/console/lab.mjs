// SPDX-License-Identifier: Apache-2.0
// lab.mjs - one browser for all tests, pages that notice everything that should not happen, and the server's own API.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

export const URL_OF_SERVER = process.env.E2B_API_URL
export const KEY = process.env.E2B_API_KEY
const SHOTS = new URL('../../build/console-shots/', import.meta.url).pathname
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

mkdirSync(SHOTS, { recursive: true })

// Nothing of the browser itself speaks to anybody.
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
let browser

export async function openBrowser() {
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS })
}

export async function closeBrowser() {
  await browser.close()
}

/** A page in a context of its own. `faults` gathers errors, refused policies, dialogs and requests to elsewhere. */
export async function newPage({ url = URL_OF_SERVER, width = 1280, dark = false } = {}) {
  const context = await browser.newContext({
    viewport: { width, height: 800 },
    colorScheme: dark ? 'dark' : 'light',
    acceptDownloads: true,
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  const page = await context.newPage()
  const faults = []
  // What a frame was refused is told here too, and is as it should be.
  page.on(
    'pageerror',
    (e) => /Blocked a frame with origin "null"/.test(e.message) || faults.push(`error: ${e.message}`),
  )
  page.on('dialog', (d) => {
    faults.push(`dialog: ${d.message()}`)
    void d.dismiss()
  })
  page.on('console', (m) => /Content Security Policy/.test(m.text()) && faults.push(`policy: ${m.text()}`))
  context.on('request', (r) => {
    const u = r.url()
    if (!/^(data|blob|about):/.test(u) && !u.startsWith(url + '/')) faults.push(`request: ${u}`)
  })
  page.setDefaultTimeout(20_000)
  return { page, faults, context, close: () => context.close() }
}

export async function signIn(page, { url = URL_OF_SERVER, key = KEY, keep = false, to = '' } = {}) {
  await page.goto(`${url}/console${to}`)
  await page.fill('input[type=password]', key)
  if (keep) await page.check('text=Keep it in this browser')
  await page.click('button:has-text("Sign in")')
  await page.waitForSelector('.shell h1, .shell nav.tabs')
}

export async function signedIn(options = {}) {
  const lab = await newPage(options)
  await signIn(lab.page, options)
  return lab
}

export async function api(method, path, body, { url = URL_OF_SERVER, key = KEY } = {}) {
  const r = await fetch(url + path, {
    method,
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await r.text()
  if (!r.ok) throw new Error(`${method} ${path}: ${r.status} ${text}`)
  return text ? JSON.parse(text) : undefined
}

const made = []

export async function createBox(more = {}) {
  const box = await api('POST', '/v2/sandboxes', { templateID: 'code-interpreter-v1', timeout: 300, ...more })
  made.push(box.sandboxID)
  return box
}

/** Ends what the tests made, whether they passed or not. */
export async function endBoxes() {
  const all = await api('GET', '/v2/sandboxes?state=running,paused')
  await Promise.all(all.map((b) => api('DELETE', `/sandboxes/${b.sandboxID}`).catch(() => undefined)))
}

export async function fileInBox(box, path, text) {
  const form = new FormData()
  form.append('file', new Blob([text]), path)
  const r = await fetch(`${URL_OF_SERVER}/files?path=${encodeURIComponent(path)}&username=user`, {
    method: 'POST',
    headers: {
      'E2b-Sandbox-Id': box.sandboxID,
      'E2b-Sandbox-Port': '49983',
      'X-Access-Token': box.envdAccessToken,
    },
    body: form,
  })
  assert.ok(r.ok, `writing ${path}: ${r.status} ${await r.text()}`)
}

export async function runInBox(box, code, language = 'python') {
  const r = await fetch(`${URL_OF_SERVER}/execute`, {
    method: 'POST',
    headers: {
      'E2b-Sandbox-Id': box.sandboxID,
      'E2b-Sandbox-Port': '49999',
      'X-Access-Token': box.envdAccessToken,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ code, language }),
  })
  assert.ok(r.ok, `running code: ${r.status}`)
  return r.text()
}

/** Serves a directory of the box on a port, from when it answers. */
export async function serveInBox(box, directory, port) {
  await runInBox(
    box,
    `import subprocess, socket, time
subprocess.Popen(["python3", "-m", "http.server", "-d", "${directory}", "${port}"], stdout=-3, stderr=-3)
${until(port)}`,
  )
}

/** Python that waits for a port. */
export function until(port) {
  return `import socket, time
for _ in range(200):
  try: socket.create_connection(("127.0.0.1", ${port})).close(); break
  except OSError: time.sleep(0.05)`
}

export function cloche(...args) {
  return execFileSync(process.env.CLOCHE_BIN, args, { encoding: 'utf8' }).trim()
}

export async function shot(page, name) {
  await page.screenshot({ path: `${SHOTS}${name}.png` })
}

/** What axe finds, as lines; serious and critical only. */
export async function axe(page, where) {
  await page.evaluate(AXE)
  const found = await page.evaluate(async () => {
    const r = await window.axe.run(document, { resultTypes: ['violations'], iframes: false })
    return r.violations
      .filter((v) => v.impact === 'serious' || v.impact === 'critical')
      .map(
        (v) =>
          `${v.id}: ${v.nodes
            .map((n) => `${n.target.join(' ')} ${n.failureSummary}`)
            .slice(0, 3)
            .join(' | ')}`,
      )
  })
  assert.deepEqual(found, [], `axe on ${where}`)
}

/** Types code into the notebook's last cell and runs it. */
export async function runCell(page, code) {
  const cell = page.locator('.cell').last()
  await cell.locator('.cm-content').click()
  await page.keyboard.insertText(code)
  const id = await cell.getAttribute('data-cell')
  await page.keyboard.press('Shift+Enter')
  return page.locator(`[data-cell="${id}"]`)
}

export async function openTab(page, box, tab) {
  await page.evaluate((to) => {
    history.pushState(null, '', to)
    dispatchEvent(new PopStateEvent('popstate'))
  }, `/console/sandboxes/${box.sandboxID}/${tab}`)
  await page.waitForSelector('nav.tabs')
}
