// SPDX-License-Identifier: Apache-2.0
// The linter of the console, of the TypeScript SDK and of every other JavaScript of the tree. scripts/tool installs it,
// apart from the packages of what it looks at, so it is imported from where it is (ESLINT_FOLDER).
import { createRequire } from 'node:module'

const require = createRequire(`${process.env.ESLINT_FOLDER}/package.json`)
const js = require('@eslint/js')
const typescript = require('typescript-eslint')

const names = {
  node: [
    'process', 'Buffer', 'console', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate',
    'clearImmediate', 'URL', 'URLSearchParams',
    'TextEncoder', 'TextDecoder', 'fetch', 'Response', 'Request', 'Headers', 'FormData', 'Blob', 'File',
    'AbortController', 'AbortSignal', 'WebSocket', 'ReadableStream', 'WritableStream', 'TransformStream', 'crypto',
    'performance', 'structuredClone', 'queueMicrotask', 'globalThis', 'require', 'module', 'exports', '__dirname',
    '__filename', 'Event', 'EventTarget', 'global', 'btoa', 'atob', 'navigator', 'CompressionStream',
    'DecompressionStream', 'Deno', 'Bun', 'DOMException', 'MessageChannel',
  ],
  browser: [
    'window', 'document', 'location', 'localStorage', 'sessionStorage', 'history', 'Element', 'getComputedStyle',
    'scrollTo', 'DataTransfer', 'innerWidth', 'requestAnimationFrame', 'dispatchEvent', 'PopStateEvent',
  ],
}
const globals = Object.fromEntries([...names.node, ...names.browser].map((name) => [name, 'readonly']))

const unused = ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrors: 'none' }]

export default [
  { ignores: ['**/node_modules/**', '**/dist/**', '**/dist-test/**', 'build*/**', '**/.node*', '**/.venv/**'] },
  js.configs.recommended,
  ...typescript.configs.recommended.map((part) => ({ ...part, files: ['**/*.ts', '**/*.tsx'] })),
  {
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    languageOptions: { ecmaVersion: 'latest', globals },
    rules: {
      'no-unused-vars': unused,
      'no-empty': ['error', { allowEmptyCatch: true }],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-var': 'error',
      'prefer-const': ['error', { destructuring: 'all' }],
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-throw-literal': 'error',
      'no-self-compare': 'error',
      // Escape sequences of terminals are what some of these read.
      'no-control-regex': 'off',
    },
  },
  { files: ['**/*.cjs'], languageOptions: { sourceType: 'commonjs' } },
  {
    files: ['**/*.ts', '**/*.tsx'],
    rules: {
      'no-unused-vars': 'off',
      // Answers of a server are any until they are looked at, and the stock SDK's types say so.
      '@typescript-eslint/no-explicit-any': 'off',
      '@typescript-eslint/no-empty-object-type': ['error', { allowInterfaces: 'with-single-extends' }],
      // The compiler knows the names of its libraries better.
      'no-undef': 'off',
      '@typescript-eslint/no-unused-vars': unused,
    },
  },
]
