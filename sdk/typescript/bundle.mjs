// SPDX-License-Identifier: Apache-2.0
// Bundles src/ into dist/: one file of ES modules, one of CommonJS. Types come from tsc (see build).

import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const MINIFIED_MAX = 90_000

const here = dirname(fileURLToPath(import.meta.url))
const dist = join(here, 'dist')
const common = {
  entryPoints: [join(here, 'src/index.ts')],
  bundle: true,
  target: 'es2022',
  platform: 'neutral',
  legalComments: 'none',
  logLevel: 'warning',
}

for (const [format, folder] of [
  ['esm', dist],
  ['cjs', join(dist, 'cjs')],
]) {
  const outfile = join(folder, 'index.js')
  await build({ ...common, format, outfile, sourcemap: 'linked', sourcesContent: false })
}

// Declarations of the CommonJS half are the same files, read as CommonJS.
for (const file of readdirSync(dist, { recursive: true })) {
  if (!file.endsWith('.d.ts') || file.startsWith('cjs')) continue
  const target = join(dist, 'cjs', file)
  mkdirSync(dirname(target), { recursive: true })
  cpSync(join(dist, file), target)
}
writeFileSync(join(dist, 'cjs/package.json'), '{ "type": "commonjs" }\n')

const minified = join(dist, 'minified.js')
const { metafile } = await build({ ...common, format: 'esm', minify: true, metafile: true, outfile: minified })
const { bytes, imports } = Object.values(metafile.outputs)[0]
rmSync(minified)
if (imports.length)
  throw new Error(`the bundle imports ${imports.map((one) => one.path).join(', ')}; it may import nothing`)
console.log(`minified bundle: ${bytes} bytes (at most ${MINIFIED_MAX})`)
if (bytes > MINIFIED_MAX) throw new Error(`the minified bundle is larger than ${MINIFIED_MAX} bytes`)
