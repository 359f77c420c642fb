// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

// The gate serves everything below /console/; nothing is loaded from anywhere else. The policy of the page
// (src/gate/console.c) forbids inline scripts and styles, so no asset may be inlined as such.
export default defineConfig({
  base: '/console/',
  resolve: { alias: { '@sdk': fileURLToPath(new URL('../sdk/typescript/src', import.meta.url)) } },
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1000,
  },
})
