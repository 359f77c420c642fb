// SPDX-License-Identifier: Apache-2.0
// `await using` wants Symbol.asyncDispose, which older runtimes lack. Compilers look it up by this very name when they
// translate `await using`, so it is enough that it exists. To be imported before a class that uses it is defined.

type Symbols = { asyncDispose?: symbol; dispose?: symbol }

const symbols = Symbol as unknown as Symbols
for (const name of ['dispose', 'asyncDispose'] as const) {
  if (!symbols[name]) Object.defineProperty(Symbol, name, { value: Symbol.for(`Symbol.${name}`) })
}

/** The symbol of the method that `await using` calls. */
export const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose
