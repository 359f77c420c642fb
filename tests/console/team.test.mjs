// SPDX-License-Identifier: Apache-2.0
// team.test.mjs - the pages of what a team has, and of the machine.
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import {
  api,
  axe,
  closeBrowser,
  createBox,
  endBoxes,
  newPage,
  openBrowser,
  shot,
  signedIn,
  URL_OF_SERVER,
} from './lab.mjs'

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

test('a key is made, shown once, renamed and deleted', async () => {
  lab = await signedIn({ to: '/keys' })
  const { page } = lab
  await page.click('button:has-text("New key")')
  await page.fill('dialog input', 'from the page')
  await page.click('dialog button:has-text("Make")')
  await page.waitForSelector('.note code:has-text("e2b_")')
  const key = await page.textContent('.note code')
  assert.equal((await fetch(`${URL_OF_SERVER}/teams`, { headers: { 'X-API-Key': key } })).status, 200)
  await axe(page, 'keys')
  await page.click('text=Hide it')
  await shot(page, 'keys')
  await page.click('button[aria-label="Actions of from the page"]')
  await page.click('[role=menuitem]:has-text("Delete")')
  await page.click('dialog button:has-text("Delete")')
  await page.waitForSelector('td:has-text("from the page")', { state: 'detached' })
  assert.equal((await fetch(`${URL_OF_SERVER}/teams`, { headers: { 'X-API-Key': key } })).status, 401)
  assert.deepEqual(lab.faults, [])
})

test('a template is built from a typed Dockerfile, with its log live, tagged and rolled back', async () => {
  lab = await signedIn({ to: '/templates' })
  const { page } = lab
  await page.waitForSelector('td:has-text("code-interpreter-v1")')
  await axe(page, 'templates')
  await shot(page, 'templates')
  for (const word of ['first', 'second']) {
    await page.click('button:has-text("Build a template")')
    await page.fill('dialog input', 'console-made')
    const run = `RUN echo the-${word}-word | tee /home/user/word-${word} && sleep 1`
    await page.fill('dialog textarea', `FROM base\n${run}\n`)
    if (word === 'first') await shot(page, 'template-build')
    await page.click('dialog footer button:has-text("Build")')
    await page.waitForSelector(`.buildlog >> text=the-${word}-word`, { timeout: 60_000 })
    await page.waitForSelector('.card header .state:has-text("ready")', { timeout: 60_000 })
    if (word === 'first') await page.click('.pagehead >> text=Templates')
  }
  await page.waitForSelector('tbody tr:nth-child(2)')
  await page.waitForSelector('tbody tr:nth-child(1):has-text("ready"):has-text("default")')
  await axe(page, 'a template')
  await shot(page, 'template')
  await page.click('button[aria-label^="Actions of build"] >> nth=0')
  await page.click('[role=menuitem]:has-text("Compare")')
  await page.waitForSelector('dialog td:has-text("/home/user/word-second")', { timeout: 60_000 })
  await page.waitForSelector('dialog tr:has-text("word-first"):has-text("removed")')
  await axe(page, 'a comparison')
  await shot(page, 'template-diff')
  await page.keyboard.press('Escape')
  const before = await api('GET', '/templates/aliases/console-made')
  const tagsOf = async () =>
    (await api('GET', `/templates/${before.templateID}/tags`)).find((t) => t.tag === 'default').buildID
  const newest = await tagsOf()
  await page.locator('tbody tr', { hasNotText: 'default' }).locator('.menu button').click()
  await page.click('text=Roll back')
  await page.waitForSelector('.toasts >> text=default is this build now')
  assert.notEqual(await tagsOf(), newest)
  assert.deepEqual(lab.faults, [])
})

test('volumes, secrets and webhooks are made and shown', async () => {
  lab = await signedIn({ to: '/volumes' })
  const { page } = lab
  await page.click('button:has-text("New volume")')
  await page.fill('dialog input', 'numbers')
  await page.click('dialog button:has-text("Make")')
  await page.waitForSelector('td:has-text("numbers")')
  await axe(page, 'volumes')
  await shot(page, 'volumes')
  await page.click('nav.side >> text=Secrets')
  await page.click('button:has-text("New secret")')
  await page.fill('dialog input[type=text]', 'token')
  await page.fill('dialog input[type=password]', 'very-hidden')
  await page.click('dialog button:has-text("Keep")')
  await page.waitForSelector('td:has-text("token")')
  assert.ok(!(await page.content()).includes('very-hidden'))
  await axe(page, 'secrets')
  await shot(page, 'secrets')
  await page.click('nav.side >> text=Webhooks')
  await page.click('button:has-text("New webhook")')
  await page.fill('dialog input[type=text] >> nth=0', 'hook')
  await page.fill('dialog input[type=text] >> nth=1', 'https://198.51.100.7/in')
  await page.fill('dialog input[type=password]', 'x'.repeat(40))
  await page.click('dialog button:has-text("Register")')
  await page.waitForSelector('td:has-text("198.51.100.7")')
  await axe(page, 'webhooks')
  await shot(page, 'webhooks')
  for (const w of await api('GET', '/events/webhooks')) await api('DELETE', `/events/webhooks/${w.id}`)
  assert.deepEqual(lab.faults, [])
})

test('events of the team come as they happen', async () => {
  lab = await signedIn({ to: '/events' })
  const { page } = lab
  const box = await createBox()
  await page.waitForSelector(`tr:has-text("${box.sandboxID}"):has-text("created")`)
  await axe(page, 'events')
  await shot(page, 'team-events')
})

test('the machine’s figures need the administrator’s token', async () => {
  lab = await newPage()
  await lab.close()
  lab = await signedIn({ to: '/machine' })
  const { page } = lab
  await page.fill('input[type=password]', 'wrong')
  await page.click('button:has-text("Open")')
  await page.waitForSelector('[role=alert]')
  await axe(page, 'the token form')
  await page.fill('input[type=password]', 'console-tests')
  await page.click('button:has-text("Open")')
  await page.waitForSelector('.tile:has-text("Warm pool")')
  await page.waitForSelector('td:has-text("local")')
  await page.waitForSelector('h2:has-text("Doctor")')
  const told = await (
    await fetch(`${URL_OF_SERVER}/admin/doctor`, { headers: { 'X-Admin-Token': 'console-tests' } })
  ).json()
  const shown = await page.locator('h2:has-text("Doctor")').locator('xpath=following::table[1]').innerText()
  for (const check of told.checks) assert.ok(shown.includes(check.name), check.name)
  await page.waitForSelector('.tile:has-text("Room for more"):has-text("idle ones")')
  for (const bound of told.capacity.bounds) await page.waitForSelector(`td:text-is("${bound.resource}")`)
  await axe(page, 'the machine')
  await shot(page, 'machine')
  assert.deepEqual(lab.faults, [])
})
