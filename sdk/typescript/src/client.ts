// SPDX-License-Identifier: Apache-2.0
// A client with connection options of its own, for programs that talk to several servers or teams.

import type { ConnectionOpts } from './config.js'
import { Sandbox } from './sandbox/sandbox.js'
import { Secret } from './secret.js'
import { callable, type CallableTemplate, TemplateBase } from './template/template.js'
import { Volume } from './volume.js'

export type E2BClientOpts = Omit<ConnectionOpts, 'signal'>

/** The classes of this package, bound to options; those of a call still win. */
export class E2B {
  readonly Sandbox: typeof Sandbox
  readonly Volume: typeof Volume
  readonly Template: CallableTemplate<typeof TemplateBase>
  readonly Secret: typeof Secret

  constructor(opts: E2BClientOpts = {}) {
    const { headers, apiHeaders, signal: _, ...rest } = opts as ConnectionOpts
    const bound: E2BClientOpts = { ...rest, headers: { ...headers }, apiHeaders: { ...apiHeaders } }
    this.Sandbox = class extends Sandbox {
      protected static override readonly boundOpts = bound
    }
    this.Volume = class extends Volume {
      protected static override readonly boundOpts = bound
    }
    this.Secret = class extends Secret {
      protected static override readonly boundOpts = bound
    }
    this.Template = callable(
      class extends TemplateBase {
        protected static override readonly boundOpts = bound
      },
    )
  }
}
