// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert'
import { Sandbox } from '@e2b/code-interpreter'

const code = `
import pandas as pd
import matplotlib.pyplot as plt
frame = pd.read_csv("/home/user/rents.csv")
plt.bar(frame["city"], frame["rent"])
plt.title("Rents")
plt.show()
float(frame["rent"].mean())
`
const sandbox = await Sandbox.create({ timeoutMs: 120_000 })
try {
  await sandbox.files.write('/home/user/rents.csv', 'city,rent\nOslo,900\nRome,700\nBern,1100\n')
  const execution = await sandbox.runCode(code)
  assert.equal(execution.error, undefined)
  const [figure] = execution.results
  assert.equal(Buffer.from(figure.png, 'base64').subarray(1, 4).toString(), 'PNG')
  assert.equal(figure.chart.type, 'bar')
  assert.equal(figure.chart.title, 'Rents')
  assert.deepEqual(figure.chart.elements.map((bar) => bar.label), ['Oslo', 'Rome', 'Bern'])
  assert.equal(Number(execution.text), 900)
} finally {
  await sandbox.kill()
}
console.log('done')
process.exit(0)
