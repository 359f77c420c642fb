// SPDX-License-Identifier: Apache-2.0
// Bundles src/ into dist/: ES modules, where what few programs use lies in chunks that are loaded when it is called,
// and one file of CommonJS with everything. Types come from tsc (see build).

import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { sizes } from './sizes.mjs'

/** Most bytes of a minified bundle: what is loaded at the start, and that with every chunk. */
const MINIFIED_MAX = { all: { eager: 60_000, all: 96_000 }, Sandbox: { eager: 60_000, all: 96_000 } }

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

for (const [format, outdir] of [
  ['esm', dist],
  ['cjs', join(dist, 'cjs')],
]) {
  const chunks = { splitting: format === 'esm', chunkNames: 'chunks/[name]-[hash]' }
  await build({ ...common, ...chunks, format, outdir, sourcemap: 'linked', sourcesContent: false })
}

// Chunks import what they share and nothing else runs when it is loaded: an import for its side effects alone is noise
// that bundlers warn about. The empty line keeps the source map true.
for (const file of readdirSync(dist, { recursive: true })) {
  if (!file.endsWith('.js') || file.startsWith('cjs')) continue
  const text = readFileSync(join(dist, file), 'utf8')
  writeFileSync(join(dist, file), text.replace(/^import "\.[^"]*";$/gm, ''))
}

// Declarations of the CommonJS half are the same files, read as CommonJS.
for (const file of readdirSync(dist, { recursive: true })) {
  if (!file.endsWith('.d.ts') || file.startsWith('cjs')) continue
  const target = join(dist, 'cjs', file)
  mkdirSync(dirname(target), { recursive: true })
  cpSync(join(dist, file), target)
}
writeFileSync(join(dist, 'cjs/package.json'), '{ "type": "commonjs" }\n')

for (const [what, measured] of Object.entries(await sizes())) {
  for (const [part, most] of Object.entries(MINIFIED_MAX[what])) {
    const bytes = measured[part]
    const told = `minified bundle of ${what}, ${part === 'eager' ? 'loaded at the start' : 'with all chunks'}`
    console.log(`${told}: ${bytes} bytes (at most ${most})`)
    if (bytes > most) throw new Error(`${told}: ${bytes} bytes, more than ${most}`)
  }
}
