// SPDX-License-Identifier: Apache-2.0
// pages.test.mjs - pages of what a team has, each used against the real server, with hostile names in all of them.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { after, afterEach, before, test } from 'node:test'
import { api, axe, closeBrowser, createBox, endBoxes, openBrowser, shot, signedIn } from './lab.mjs'

const MARK = '<img src=x onerror="window.pwned=1">'
const CREATED = ['sandbox.lifecycle.created']

let lab
const cleanups = []

before(openBrowser)
after(async () => {
  await endBoxes()
  await closeBrowser()
})
afterEach(async () => {
  for (const undo of cleanups.splice(0).reverse()) await undo()
  if (lab) await lab.close()
  lab = undefined
})

const untouched = async () => {
  assert.equal(await lab.page.evaluate(() => window.pwned), undefined)
  assert.equal(await lab.page.locator('img[src="x"]').count(), 0)
  assert.deepEqual(lab.faults, [])
}

const menu = async (page, label, item) => {
  await page.click(`button[aria-label=${JSON.stringify(label)}]`)
  await page.click(`[role=menuitem]:has-text("${item}")`)
}

/** What pages show, made by the API and removed after the test. */
async function volume(name) {
  const made = await api('POST', '/volumes', { name })
  cleanups.push(() => api('DELETE', `/volumes/${made.volumeID}`).catch(() => undefined))
  return made
}

async function webhook(name, url) {
  const body = { name, url, events: CREATED, signatureSecret: 's'.repeat(40) }
  const made = await api('POST', '/events/webhooks', body)
  cleanups.push(() => api('DELETE', `/events/webhooks/${made.id}`).catch(() => undefined))
  return made
}

async function secret(name) {
  const made = await api('POST', '/secrets', { name, value: 'never-shown' })
  cleanups.push(() => api('DELETE', `/secrets/${made.secretID}`).catch(() => undefined))
  return made
}

async function key(name) {
  const made = await api('POST', '/api-keys', { name })
  cleanups.push(() => api('DELETE', `/api-keys/${made.id}`).catch(() => undefined))
  return made
}

async function build(name, line) {
  const made = await api('POST', '/v3/templates', { name })
  const steps = [{ type: 'RUN', args: [line], force: true }]
  await api('POST', `/v2/templates/${made.templateID}/builds/${made.buildID}`, { fromTemplate: 'base', steps })
  const ask = () => api('GET', `/templates/${made.templateID}/builds/${made.buildID}/status?logsOffset=0`)
  let status
  do {
    status = await ask()
    assert.notEqual(status.status, 'error', JSON.stringify(status.reason))
  } while (status.status !== 'ready')
  return made
}

test('files of a volume are uploaded, looked at, changed, downloaded and deleted', async () => {
  const made = await volume('console-files')
  const content = async (path) => {
    const r = await fetch(
      `${process.env.E2B_API_URL}/volumecontent/${made.volumeID}/file?path=${encodeURIComponent(path)}`,
      { headers: { Authorization: `Bearer ${made.token}` } },
    )
    return r.ok ? r.text() : r.status
  }
  lab = await signedIn({ to: '/volumes' })
  const { page } = lab
  await page.keyboard.press('n')
  await page.fill('dialog input', MARK)
  await page.click('dialog button:has-text("Make")')
  await page.waitForSelector('dialog [role=alert]')
  assert.equal(await page.inputValue('dialog input'), MARK)
  await page.click('dialog button:has-text("Cancel")')
  await page.click('td >> text=console-files')
  await page.waitForSelector('text=Drop files here')
  await menu(page, 'More for this directory', 'New directory')
  await page.fill('dialog input', 'deep')
  await page.click('dialog button:has-text("Make")')
  await page.click('.entry:has-text("deep")')
  await page.waitForSelector('.steps button:has-text("deep")')
  await page.waitForSelector('text=Drop files here')
  await page.setInputFiles('input[type=file]', [
    { name: 'table.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') },
    { name: MARK, mimeType: 'text/html', buffer: Buffer.from(MARK) },
  ])
  await page.click('.entry:has-text("onerror")')
  await page.waitForSelector('.preview .cm-content:has-text("onerror")')
  await page.click('.entry:has-text("table.csv")')
  await page.waitForSelector('.preview .cm-content:has-text("1,2")')
  await axe(page, 'a volume')
  await shot(page, 'volume')
  await page.click('.preview .cm-content')
  await page.keyboard.press('Control+End')
  await page.keyboard.insertText('3,4')
  await page.click('.preview button:has-text("Save")')
  await page.waitForSelector('.toasts >> text=Saved')
  assert.equal(await content('/deep/table.csv'), 'a,b\n1,2\n3,4')
  const [file] = await Promise.all([page.waitForEvent('download'), page.click('.preview button[title=Download]')])
  assert.equal(await readFile(await file.path(), 'utf8'), 'a,b\n1,2\n3,4')
  await menu(page, 'Actions of table.csv', 'Delete')
  await page.click('dialog footer button:has-text("Delete")')
  await page.waitForSelector('.entry:has-text("table.csv")', { state: 'detached' })
  assert.equal(await content('/deep/table.csv'), 404)
  await untouched()
  await page.click('.pagehead >> text=Volumes')
  await page.click('button[aria-label="Delete console-files"]')
  await page.click('dialog footer button:has-text("Delete")')
  await page.waitForSelector('td:has-text("console-files")', { state: 'detached' })
  assert.equal((await api('GET', '/volumes')).filter((v) => v.name === 'console-files').length, 0)
})

test('deliveries of a webhook are shown, and what its receiver answers is text', async () => {
  const got = []
  const receiver = createServer((req, res) => {
    got.push(req.url)
    req.resume()
    res.writeHead(got.length === 1 ? 200 : 418).end(MARK)
  })
  await new Promise((done) => receiver.listen(0, '127.0.0.1', done))
  cleanups.push(() => new Promise((done) => receiver.close(done)))
  const hook = await webhook(`hook ${MARK}`, `http://127.0.0.1:${receiver.address().port}/in`)
  lab = await signedIn({ to: '/webhooks' })
  const { page } = lab
  await page.click('td a:has-text("hook <img")')
  await page.waitForSelector('text=Nothing was sent yet')
  const first = await createBox()
  await page.waitForSelector(`tr:has-text("${first.sandboxID}"):has-text("answered 200")`)
  const second = await createBox()
  await page.waitForSelector(`tr:has-text("${second.sandboxID}"):has-text("answered 418")`)
  await page.click(`tr:has-text("${first.sandboxID}") summary`)
  await page.waitForSelector(`tr:has-text("${first.sandboxID}") pre[aria-label=Answered] >> text=onerror`)
  await axe(page, 'a webhook')
  await shot(page, 'webhook')
  await page.selectOption('select[aria-label=Which]', 'failed')
  await page.waitForSelector(`tr:has-text("${first.sandboxID}")`, { state: 'detached' })
  await page.waitForSelector(`tr:has-text("${second.sandboxID}")`)
  await untouched()
  await page.click('.pagehead >> text=Webhooks')
  await menu(page, `Actions of ${hook.name}`, 'Turn off')
  await page.waitForSelector('tr:has-text("hook <img") .state:has-text("off")')
  assert.equal((await api('GET', `/events/webhooks/${hook.id}`)).enabled, false)
  await menu(page, `Actions of ${hook.name}`, 'Delete')
  await page.click('dialog footer button:has-text("Delete")')
  await page.waitForSelector('td:has-text("hook <img")', { state: 'detached' })
  await untouched()
})

test('a tag goes back along its history, log lines are text, and a template is deleted', async () => {
  const older = await build('console-history', `echo '${MARK}'`)
  cleanups.push(() => api('DELETE', `/templates/${older.templateID}`).catch(() => undefined))
  await build('console-history', 'echo newer')
  lab = await signedIn({ to: `/templates/${older.templateID}/${older.buildID}` })
  const { page } = lab
  await page.waitForSelector('.buildlog >> text=onerror')
  const back = page.locator('.taghistory', { hasText: 'default' }).locator('button:has-text("Back to this")')
  await back.waitFor()
  await axe(page, 'the history of tags')
  await back.scrollIntoViewIfNeeded()
  await shot(page, 'template-history')
  await back.click()
  await page.waitForSelector('.toasts >> text=default is this build now')
  const tags = await api('GET', `/templates/${older.templateID}/tags`)
  assert.equal(tags.find((t) => t.tag === 'default').buildID, older.buildID)
  await page.waitForSelector(`.taghistory li:has-text("now"):has-text("${older.buildID.slice(0, 8)}")`)
  await untouched()
  await menu(page, 'More for this template', 'Delete')
  await page.click('dialog footer button:has-text("Delete")')
  await page.waitForSelector('h1:has-text("Templates")')
  await page.waitForSelector('td:has-text("code-interpreter-v1")')
  await page.waitForSelector('td:has-text("console-history")', { state: 'detached' })
})

test('a secret gets a new value and goes, and no page or answer holds a value', async () => {
  const made = await secret('console-secret')
  lab = await signedIn({ to: '/secrets' })
  const { page } = lab
  const answers = []
  page.on('response', async (r) => r.url().includes('/secrets') && answers.push(await r.text().catch(() => '')))
  await menu(page, 'Actions of console-secret', 'New value')
  await page.fill('dialog input[type=password]', 'second-hidden')
  await page.click('dialog button:has-text("Keep")')
  await page.waitForSelector('tr:has-text("console-secret") td.num:text-is("2")')
  assert.equal((await api('GET', `/secrets/${made.secretID}`)).currentVersion, 2)
  for (const text of [await page.content(), ...answers]) assert.ok(!/never-shown|second-hidden/.test(text), text)
  assert.ok(answers.length > 0)
  await menu(page, 'Actions of console-secret', 'Delete')
  await page.click('dialog footer button:has-text("Delete")')
  await page.waitForSelector('td:has-text("console-secret")', { state: 'detached' })
  await untouched()
})

test('a key is renamed, and hostile names of keys and webhooks are text everywhere', async () => {
  const made = await key(`key ${MARK}`)
  await webhook(MARK, 'http://127.0.0.1:9/in')
  lab = await signedIn({ to: '/keys' })
  const { page } = lab
  await page.waitForSelector('td:has-text("key <img")')
  await page.click('nav.side >> text=Webhooks')
  await page.waitForSelector('td:has-text("<img")')
  await untouched()
  await page.click('nav.side >> text=API keys')
  await menu(page, `Actions of ${made.name}`, 'Rename')
  await page.fill('dialog input', `renamed ${MARK}`)
  await page.click('dialog button:has-text("Rename")')
  await page.waitForSelector('td:has-text("renamed <img")')
  assert.ok((await api('GET', '/api-keys')).some((k) => k.id === made.id && k.name === `renamed ${MARK}`))
  // What a key did is told with its name.
  const box = await createBox({ metadata: { [MARK]: MARK } })
  await api('DELETE', `/sandboxes/${box.sandboxID}`, undefined, { key: made.key })
  await page.click('nav.side >> text=Events')
  await page.waitForSelector(`tr:has-text("${box.sandboxID}"):has-text("renamed <img")`)
  await untouched()
})

test('events are chosen by sandbox and type and can stand still', async () => {
  const [one, other] = [await createBox(), await createBox()]
  lab = await signedIn({ to: '/events' })
  const { page } = lab
  await page.waitForSelector(`tr:has-text("${other.sandboxID}")`)
  await page.fill('input[aria-label=Sandbox]', one.sandboxID)
  await page.keyboard.press('Enter')
  await page.waitForSelector(`tr:has-text("${other.sandboxID}")`, { state: 'detached' })
  await page.waitForSelector(`tr:has-text("${one.sandboxID}"):has-text("created")`)
  await page.selectOption('select[aria-label=Type]', 'paused')
  await page.waitForSelector('text=Nothing happened yet')
  await api('POST', `/sandboxes/${one.sandboxID}/pause`)
  await page.waitForSelector(`tr:has-text("${one.sandboxID}"):has-text("paused")`)
  await page.uncheck('text=Follow')
  await page.waitForSelector(`tr:has-text("${one.sandboxID}"):has-text("paused")`)
  const asked = []
  page.on('request', (r) => r.url().includes('/events/') && asked.push(r.url()))
  await api('POST', `/sandboxes/${one.sandboxID}/connect`, { timeout: 60 })
  await page.waitForTimeout(2500) // longer than it takes to ask again where it follows
  assert.deepEqual(asked, [], 'it asks although it does not follow')
  await axe(page, 'filtered events')
  await untouched()
})

test('a link can’t make the page send its key to a sandbox', async () => {
  lab = await signedIn({ keep: true })
  const { page, context } = lab
  const box = await createBox()
  const asked = []
  context.on('request', (r) => new URL(r.url()).pathname.startsWith('/box/') && asked.push(r.url()))
  const up = ['..%2F', '%2e%2e%2f', '..%5C', 'x%2F..%2F..%2F']
  for (const of of ['sandboxes', 'templates', 'volumes', 'webhooks'])
    for (const dots of up) {
      await page.goto(`${process.env.E2B_API_URL}/console/${of}/${dots}box%2F${box.sandboxID}%2F8000%2Fkey`)
      await page.waitForSelector('h1:text-is("Sandboxes")')
      await page.waitForSelector(`td:has-text("${box.sandboxID}")`)
    }
  assert.deepEqual(asked, [])
  await untouched()
})

test('the team’s page plots its sandboxes and counts what it has', async () => {
  await createBox()
  await key('counted')
  lab = await signedIn({ to: '/team' })
  const { page } = lab
  await page.waitForSelector('.plot[aria-label="Sandboxes at once over time"] canvas')
  await page.waitForSelector('.plot[aria-label="Starts per second over time"] canvas')
  const most = await page.textContent('.plotcard header')
  assert.ok(Number(/most (\d+)/.exec(most)[1]) >= 1, most)
  const keys = (await api('GET', '/api-keys')).length
  await page.waitForSelector(`.facts dt:has-text("API keys") + dd:has-text("${keys}")`)
  await axe(page, 'the team')
  await shot(page, 'team')
  await page.click('button:has-text("7 days")')
  await page.waitForSelector('button[aria-pressed=true]:has-text("7 days")')
  await page.waitForSelector('.plot canvas')
  await untouched()
})

test('the administrator’s token is never stored', async () => {
  lab = await signedIn({ to: '/machine', keep: true })
  const { page } = lab
  await page.fill('input[type=password]', 'console-tests')
  await page.click('button:has-text("Open")')
  await page.waitForSelector('.tile:has-text("Warm pool")')
  const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))
  assert.ok(stored.includes('cloche.session') && !stored.includes('console-tests'), stored)
  await page.reload()
  await page.waitForSelector('button:has-text("Open")')
  await untouched()
})

test('every page is readable in the dark and on 360 pixels', async () => {
  const vol = await volume('console-narrow')
  const hook = await webhook('a hook with a name that has to fit', 'http://127.0.0.1:9/a/long/path/of/a/receiver')
  await secret('console-narrow')
  await createBox()
  const pages = ['templates', 'volumes', `volumes/${vol.volumeID}`, 'events', 'team', 'keys', 'secrets', 'webhooks']
  pages.push(`webhooks/${hook.id}`, 'machine')
  for (const look of [
    { name: 'dark', dark: true },
    { name: 'narrow', width: 360 },
  ]) {
    lab = await signedIn(look)
    const { page } = lab
    for (const to of pages) {
      await page.evaluate((p) => {
        history.pushState(null, '', `/console/${p}`)
        dispatchEvent(new PopStateEvent('popstate'))
      }, to)
      await page.waitForFunction(() => document.querySelector('.pagehead') && !document.querySelector('.loading'))
      if (to === 'machine') {
        await page.fill('input[type=password]', 'console-tests')
        await page.click('button:has-text("Open")')
        await page.waitForSelector('.tile')
      }
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      assert.ok(over <= 0, `${to} is ${over} px too wide (${look.name})`)
      await axe(page, `${to}, ${look.name}`)
      await shot(page, `${to.replace(/\/.*/, '-one')}-${look.name}`)
    }
    await untouched()
    if (look.name === 'dark') await lab.close()
  }
})
