// SPDX-License-Identifier: Apache-2.0
// hostile.test.mjs - what a box may send: nothing of it runs in the page, reads its storage or leaves the server.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, afterEach, before, test } from 'node:test'
import {
  closeBrowser,
  createBox,
  endBoxes,
  fileInBox,
  openBrowser,
  openTab,
  runCell,
  runInBox,
  serveInBox,
  until,
  signedIn,
  URL_OF_SERVER,
} from './lab.mjs'

const MARK = '<img src=x onerror="window.pwned=1;top.pwned=1">'

// Tries what a page of a box could try, and writes down how each ended.
const PROBE = `<p id=out>started</p><script>
const out = []
const put = (name, open) => out.push(name + (open ? ' OPEN' : ' blocked'))
const attempt = (name, f) => { try { put(name, f()) } catch { put(name, false) } }
attempt('parent', () => parent !== window && parent.document.body)
attempt('opener', () => window.opener && window.opener.document)
attempt('storage', () => localStorage.getItem('cloche.session'))
attempt('cookie', () => document.cookie)
attempt('top', () => { if (top !== window) top.pwned = 1; return top !== window && top.pwned === 1 })
attempt('popup', () => window.open('/console/', 'x') && parent !== window)
attempt('worker', () => navigator.serviceWorker && navigator.serviceWorker.controller)
fetch('/teams').then((r) => r.text()).then((t) => put('api', t.includes('teamID')), () => put('api', false))
  .finally(() => { document.getElementById('out').textContent = out.join(', ') })
</script>`

let lab

before(openBrowser)
after(async () => {
  await endBoxes()
  await closeBrowser()
})
afterEach(async () => {
  if (lab) await lab.close()
  lab = undefined
})

const untouched = async () => {
  assert.equal(await lab.page.evaluate(() => window.pwned), undefined)
  assert.deepEqual(
    lab.faults.filter((f) => !f.startsWith('policy:')),
    [],
  )
}

test('HTML of a result runs in a document that reaches nothing', async () => {
  lab = await signedIn({ keep: true })
  const { page } = lab
  const box = await createBox()
  await openTab(page, box, 'notebook')
  const cell = await runCell(page, `from IPython.display import HTML\nHTML(${JSON.stringify(PROBE)})`)
  const frame = cell.frameLocator('iframe').locator('#out')
  await frame.filter({ hasText: 'api' }).waitFor()
  const told = await frame.textContent()
  assert.ok(!told.includes('OPEN'), told)
  assert.ok(told.includes('parent blocked') && told.includes('storage blocked') && told.includes('api blocked'), told)
  await untouched()
})

test('a frame can’t be led to another address or be told to speak as the page', async () => {
  lab = await signedIn()
  const { page } = lab
  const box = await createBox()
  await openTab(page, box, 'notebook')
  const leave = await runCell(
    page,
    `from IPython.display import HTML
HTML("<script>parent.postMessage({height: 1e9, html: 'x'}, '*'); location = 'http://127.0.0.1:9/stolen'</script>")`,
  )
  await leave.locator('iframe').waitFor()
  await (await runCell(page, '"still " + "here"')).locator('.outputs:has-text("still here")').waitFor()
  assert.ok((await leave.locator('iframe').evaluate((f) => f.clientHeight)) <= 1600)
  assert.deepEqual(
    lab.faults.filter((f) => f.startsWith('request:') || f.startsWith('dialog:')),
    [],
  )
})

test('SVG, Markdown, scripts, errors and names of results do nothing', async () => {
  lab = await signedIn()
  const { page } = lab
  const box = await createBox()
  await openTab(page, box, 'notebook')
  const cells = [
    `SVG('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>top.pwned=1</script>'
    '<image href="http://127.0.0.1:9/s.png" onerror="top.pwned=1"/></svg>')`,
    `Markdown('''${MARK}\n\n[go](javascript:top.pwned=1) [data](data:text/html,x) ![p](http://127.0.0.1:9/p.png)

<script>top.pwned=1</script>''')`,
    `Javascript("parent.pwned = 1; top.pwned = 1; window.pwned = 1")`,
    `Latex(r"$\\href{javascript:top.pwned=1}{x} \\htmlClass{a}{b} \\includegraphics{http://127.0.0.1:9/l.png}$")`,
    `JSON({'${MARK.replaceAll('"', '\\"')}': '${MARK.replaceAll('"', '\\"')}'})`,
    `raise type('${'E'.repeat(5)}', (Exception,), {})('''${MARK}''')`,
    `print('''${MARK}\\x1b]8;;javascript:top.pwned=1\\x07link\\x1b]8;;\\x07''')`,
    `import matplotlib.pyplot as plt
plt.bar(['<script>top.pwned=1</script>'], [1]); plt.title('''${MARK}'''); plt.show()`,
  ]
  await (await runCell(page, 'from IPython.display import *')).waitFor()
  for (const code of cells) await (await runCell(page, code)).locator('.outputs').waitFor()
  await page.waitForFunction(() => !document.querySelector('.cell.runs'))
  assert.equal(await page.locator('.outputs a[href^="javascript:"], .outputs a[href^="data:"]').count(), 0)
  assert.equal(await page.locator('.outputs img[onerror], .outputs script').count(), 0)
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
  await untouched()
})

test('names of files, log lines, metadata and processes are text', async () => {
  lab = await signedIn()
  const { page } = lab
  const box = await createBox({ metadata: { [MARK]: MARK } })
  const name = '<img src=x onerror=top.pwned=1>.html'
  await fileInBox(box, `/home/user/${name}`, PROBE)
  await runInBox(box, `import os; os.system("echo '${MARK.replaceAll('"', '\\"')}' >&2")`)
  await page.waitForSelector('td.name .tag')
  await openTab(page, box, 'files')
  await page.click(`.entries >> text=onerror`)
  await page.waitForSelector('.preview .cm-content')
  for (const tab of ['Overview', 'Processes', 'Logs', 'Events']) {
    await page.click(`nav.tabs >> text=${tab}`)
    await page.waitForFunction(() => !document.querySelector('.loading'))
  }
  assert.equal(await page.locator('img[onerror]').count(), 0)
  await untouched()
})

test('a page of a box on the path way reads nothing of the console', async () => {
  lab = await signedIn({ keep: true })
  const box = await createBox()
  await fileInBox(box, '/home/user/site/index.html', PROBE)
  await serveInBox(box, '/home/user/site', 8124)
  const other = await lab.context.newPage()
  await other.goto(`${URL_OF_SERVER}/box/${box.sandboxID}/8124/`)
  await other.locator('#out').filter({ hasText: 'api' }).waitFor()
  const told = await other.locator('#out').textContent()
  assert.ok(!told.includes('OPEN') && told.includes('storage blocked'), told)
})

test('a file behind a signed URL is no document of the console’s origin', async () => {
  lab = await signedIn({ keep: true })
  const box = await createBox()
  await fileInBox(box, '/home/user/page.html', PROBE)
  const sign = createHash('sha256').update(`/home/user/page.html:read:user:${box.envdAccessToken}`).digest('base64')
  const query = new URLSearchParams({
    path: '/home/user/page.html',
    username: 'user',
    signature: `v1_${sign.replace(/=+$/, '')}`,
  })
  const answer = await fetch(`${URL_OF_SERVER}/files?${query}`)
  assert.equal(answer.status, 200, await answer.text())
  assert.match(answer.headers.get('content-security-policy') ?? '', /^sandbox/)
})

test('answers of boxes say nothing about the console’s origin', async () => {
  const box = await createBox()
  await runInBox(
    box,
    `import subprocess, textwrap
open('/home/user/s.py', 'w').write(textwrap.dedent('''
  from http.server import *
  class H(BaseHTTPRequestHandler):
    def do_GET(self):
      self.send_response(200); self.send_header('Clear-Site-Data', '"*"'); self.send_header('Set-Cookie', 'a=b')
      self.send_header('Content-Length', '0'); self.end_headers()
  HTTPServer(('', 8125), H).serve_forever()'''))
subprocess.Popen(['python3', '/home/user/s.py'], stdout=-3, stderr=-3)
${until(8125)}`,
  )
  const headers = { 'E2b-Sandbox-Id': box.sandboxID, 'E2b-Sandbox-Port': '8125' }
  const asBrowser = await fetch(`${URL_OF_SERVER}/`, { headers: { ...headers, 'Sec-Fetch-Site': 'same-origin' } })
  assert.equal(asBrowser.headers.get('clear-site-data'), null)
  assert.equal(asBrowser.headers.get('set-cookie'), null)
  const asScript = await fetch(`${URL_OF_SERVER}/box/${box.sandboxID}/8125/x.js`, {
    headers: { 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': 'script' },
  })
  assert.equal(asScript.status, 403)
  const asProgram = await fetch(`${URL_OF_SERVER}/`, { headers })
  assert.equal(asProgram.headers.get('set-cookie'), 'a=b')
})

test('the console’s files carry the strict headers', async () => {
  const page = await fetch(`${URL_OF_SERVER}/`)
  const policy = page.headers.get('content-security-policy')
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self';/)
  assert.match(policy, /frame-ancestors 'none'/)
  assert.match(policy, /require-trusted-types-for 'script'/)
  assert.equal(page.headers.get('x-content-type-options'), 'nosniff')
  assert.equal(page.headers.get('referrer-policy'), 'no-referrer')
  assert.equal(page.headers.get('cross-origin-opener-policy'), 'same-origin')
  const script = /src="(\/console\/assets\/[^"]+\.js)"/.exec(await page.text())[1]
  const asset = await fetch(URL_OF_SERVER + script)
  assert.match(asset.headers.get('cache-control'), /immutable/)
  assert.equal(asset.headers.get('content-encoding'), 'gzip')
  const again = await fetch(URL_OF_SERVER + script, { headers: { 'If-None-Match': asset.headers.get('etag') } })
  assert.equal(again.status, 304)
  const frame = await fetch(`${URL_OF_SERVER}/console/frame.html`)
  assert.match(frame.headers.get('content-security-policy'), /^sandbox allow-scripts; default-src 'none'/)
  assert.equal((await fetch(`${URL_OF_SERVER}/console/assets/none.js`)).status, 404)
  assert.equal(
    (await fetch(`${URL_OF_SERVER}/console/..%2f..%2fetc/passwd`)).headers
      .get('content-type')
      .startsWith('text/html'),
    true,
  )
})

test('guessing sign-in codes is throttled', async () => {
  const statuses = new Set()
  for (let i = 0; i < 200 && !statuses.has(429); i++) {
    const r = await fetch(`${URL_OF_SERVER}/console/session`, {
      method: 'POST',
      headers: { 'X-Console-Code': 'f'.repeat(40) },
    })
    statuses.add(r.status)
  }
  assert.deepEqual([...statuses].sort(), [401, 429])
})
