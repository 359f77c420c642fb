// SPDX-License-Identifier: Apache-2.0
// Quick start: the stock JavaScript SDK against a Cloche server.
//
// npm install @e2b/code-interpreter, paste the environment lines that
// `cloche serve` prints, and run this file with node.

import { writeFileSync } from 'node:fs'
import { Sandbox } from '@e2b/code-interpreter'

const box = await Sandbox.create()
try {
  // Cells share one kernel: what the first defines, the second sees.
  await box.runCode('x = 1')
  console.log('x is', (await box.runCode('x += 1; x')).text)

  // Rich results: a table as html and data, a figure as a picture and a chart.
  const table = await box.runCode("import pandas as pd; pd.DataFrame({'a': [1, 2], 'b': [3, 4]})")
  console.log('table columns:', JSON.stringify(table.results[0].data))
  console.log('table is html:', table.results[0].html.includes('<table'))

  const figure = await box.runCode(
    'import matplotlib.pyplot as plt; plt.plot([1, 2, 3], [4, 5, 6]); plt.show()',
  )
  writeFileSync('chart.png', Buffer.from(figure.results[0].png, 'base64'))
  console.log('chart type:', figure.results[0].chart.type)

  // Errors come back as data, with name, value and traceback.
  const { error } = await box.runCode('1 / 0')
  console.log('error:', error.name, '-', error.value)
  console.log('traceback has the line:', error.traceback.includes('1 / 0'))

  // Files and commands.
  await box.files.write('/home/user/hello.txt', 'hello from outside')
  console.log('file:', await box.files.read('/home/user/hello.txt'))
  const result = await box.commands.run('cat hello.txt | wc -c')
  console.log('command:', result.stdout.trim(), 'bytes, exit code', result.exitCode)

  // The server knows the box while it lives.
  const alive = (await Sandbox.list().nextItems()).map((listed) => listed.sandboxId)
  console.log('listed:', alive.includes(box.sandboxId))
} finally {
  await box.kill()
}

console.log('running after kill:', await box.isRunning())
