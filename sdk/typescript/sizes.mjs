// SPDX-License-Identifier: Apache-2.0
// What a program pays for this package: dist/ bundled and minified for it, with its chunks apart. `eager` is what is
// loaded when the program starts, `all` adds the chunks that a call loads when it is first made.
//
//   node sizes.mjs   prints {"all": {"eager": bytes, "all": bytes}, "Sandbox": {...}} for every export, and for one

import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const here = dirname(fileURLToPath(import.meta.url))

// Bytes of a bundle of these exports. Nothing may be imported from outside of it.
export async function sizesOf(names) {
  const { metafile } = await build({
    stdin: { contents: `export ${names} from './dist/index.js'`, resolveDir: here },
    absWorkingDir: here,
    outdir: 'minified',
    bundle: true,
    splitting: true,
    minify: true,
    metafile: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    platform: 'neutral',
    legalComments: 'none',
    logLevel: 'warning',
  })
  const { outputs } = metafile
  const eager = new Set()
  const enter = (path) => {
    if (eager.has(path)) return
    eager.add(path)
    for (const one of outputs[path].imports) if (one.kind === 'import-statement') enter(one.path)
  }
  for (const { imports } of Object.values(outputs)) {
    const outside = imports.filter((one) => one.external).map((one) => one.path)
    if (outside.length) throw new Error(`the bundle imports ${outside.join(', ')}`)
  }
  enter('minified/stdin.js')
  const sum = (paths) => paths.reduce((bytes, path) => bytes + outputs[path].bytes, 0)
  return { eager: sum([...eager]), all: sum(Object.keys(outputs)) }
}

export const sizes = async () => ({ all: await sizesOf('*'), Sandbox: await sizesOf('{ Sandbox }') })

if (process.argv[1] === join(here, 'sizes.mjs')) console.log(JSON.stringify(await sizes()))
