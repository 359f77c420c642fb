// SPDX-License-Identifier: Apache-2.0
// Bundles src/ into dist/: one file of ES modules, one of CommonJS. Types come from tsc (see build).

import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const MINIFIED_MAX = { Sandbox: 60_000, all: 90_000 }

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

// What a program pays: for Sandbox with all that hangs on it, and for every export together.
for (const [what, most] of Object.entries(MINIFIED_MAX)) {
  const contents = what === 'all' ? "export * from './src/index.ts'" : `export { ${what} } from './src/index.ts'`
  const { metafile } = await build({
    ...common,
    entryPoints: undefined,
    stdin: { contents, resolveDir: here },
    format: 'esm',
    minify: true,
    metafile: true,
    write: false,
    outfile: 'minified.js',
  })
  const { bytes, imports } = metafile.outputs['minified.js']
  if (imports.length) throw new Error(`the bundle imports ${imports.map((one) => one.path).join(', ')}`)
  console.log(`minified bundle of ${what}: ${bytes} bytes (at most ${most})`)
  if (bytes > most) throw new Error(`the minified bundle of ${what} is larger than ${most} bytes`)
}
