// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks'
import { Button, Dialog, Field } from './parts'

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
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  return (
    <Dialog title={p.title} onClose={p.onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          setBusy(true)
          setError('')
          p.run(name.trim()).then(p.onClose, (x: Error) => {
            setBusy(false)
            setError(x.message)
          })
        }}
      >
        <div class="body">
          <Field label="Name" hint={p.hint} error={error}>
            {(id) => (
              <input id={id} type="text" value={name} autofocus onInput={(e) => setName(e.currentTarget.value)} />
            )}
          </Field>
        </div>
        <footer>
          <Button onClick={p.onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy} disabled={!name.trim()}>
            {p.word}
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}
