// SPDX-License-Identifier: Apache-2.0
// A program with `await using`, translated by TypeScript for runtimes that don't know the words yet.

import { Sandbox } from '../dist/index.js'

export async function visit(): Promise<string> {
  await using box = await Sandbox.create('base', { timeoutMs: 60_000 })
  await using handle = await box.commands.run('sleep 60', { background: true })
  if (!handle.pid) throw new Error('no pid')
  return box.sandboxId
}
