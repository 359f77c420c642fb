// SPDX-License-Identifier: Apache-2.0
// A data analysis with charts, as a user of the stock SDK writes it.
import { Sandbox } from '@e2b/code-interpreter'

const sandbox = await Sandbox.create({ timeoutMs: 120_000 })
try {
  const csv = ['city,year,rain', 'Oslo,2023,800', 'Oslo,2024,760', 'Rome,2023,780', 'Rome,2024,820'].join('\n')
  await sandbox.files.write('/home/user/rain.csv', csv)
  const table = await sandbox.runCode(`
import pandas as pd
data = pd.read_csv('/home/user/rain.csv')
data.groupby('city', as_index=False)['rain'].mean()`)
  console.log('table', JSON.stringify(table.results[0].data), table.results[0].formats().join())
  for (const draw of [
    'plt.bar(data.city, data.rain)',
    'plt.plot(data.year, data.rain)',
    'plt.pie([1, 2])',
    'plt.scatter(data.year, data.rain)',
  ]) {
    const { results, error } = await sandbox.runCode(`import matplotlib.pyplot as plt\n${draw}\nplt.show()`)
    if (error) throw new Error(error.traceback)
    const { type, elements } = results[0].chart
    console.log('chart', type, elements.length, results[0].png.length > 1000)
  }
  const failed = await sandbox.runCode('data["nothing"]')
  console.log('error', failed.error.name, JSON.stringify(failed.toJSON().results))
} finally {
  await sandbox.kill()
}
