// SPDX-License-Identifier: Apache-2.0
// @e2b/desktop on our template `desktop`: what drive_desktop.py does, through npm's client.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'

const require = createRequire(`${process.env.CLOCHE_CLIENT}/`)
const { Sandbox } = require('@e2b/desktop')

async function eventually(look, seconds = 30) {
  const end = Date.now() + seconds * 1000
  for (;;) {
    const found = await look().catch(() => undefined)
    if (found) return found
    assert(Date.now() < end, `not within ${seconds} s`)
    await sleep(300) // between two looks at the sandbox
  }
}

const desktop = await Sandbox.create({ resolution: [1280, 720] })
try {
  const image = Buffer.from(await desktop.screenshot())
  assert.equal(image.subarray(1, 4).toString(), 'PNG')
  assert.deepEqual([image.readUInt32BE(16), image.readUInt32BE(20)], [1280, 720])
  assert.deepEqual(await desktop.getScreenSize(), { width: 1280, height: 720 })

  await desktop.moveMouse(300, 200)
  assert.deepEqual(await desktop.getCursorPosition(), { x: 300, y: 200 })
  await desktop.leftClick(310, 210)
  await desktop.rightClick(500, 400)
  await desktop.press('esc')
  await desktop.scroll('down', 2)
  await desktop.drag([510, 410], [560, 460])
  assert.deepEqual(await desktop.getCursorPosition(), { x: 560, y: 460 })

  await desktop.launch('xfce4-terminal')
  const [window] = await eventually(() => desktop.getApplicationWindows('xfce4-terminal'))
  await eventually(async () => (await desktop.getWindowTitle(window)).toLowerCase().includes('terminal'))
  await sleep(2000) // the shell's prompt
  await desktop.write("echo 'typed by $HAND' >/tmp/typed")
  await desktop.press('enter')
  const typed = await eventually(async () => (await desktop.commands.run('cat /tmp/typed')).stdout)
  assert.equal(typed, 'typed by $HAND\n')

  await desktop.stream.start({ requireAuth: true })
  const key = desktop.stream.getAuthKey()
  const url = desktop.stream.getUrl({ authKey: key })
  assert.equal(new URL(url).searchParams.get('password'), key)
  const page = await fetch(url)
  assert.equal(page.status, 200)
  assert.match(await page.text(), /noVNC/)
  await desktop.stream.stop()
} finally {
  await desktop.kill()
}
