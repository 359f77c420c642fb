// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks'
import { Button, Dialog, Field } from './parts'
import { doing } from './toast'

interface Props {
  title: string
  word: string // what the button does
  value: string
  hint?: string
  run: (name: string) => Promise<unknown>
  onClose: () => void
}

/** Asks for one name. */
export function NameDialog(p: Props) {
  const [name, setName] = useState(p.value)
  return (
    <Dialog title={p.title} onClose={p.onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void doing(p.run(name.trim())).then(p.onClose)
        }}
      >
        <div class="body">
          <Field label="Name" hint={p.hint}>
            {(id) => (
              <input id={id} type="text" value={name} autofocus onInput={(e) => setName(e.currentTarget.value)} />
            )}
          </Field>
        </div>
        <footer>
          <Button onClick={p.onClose}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={!name.trim()}>
            {p.word}
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}
