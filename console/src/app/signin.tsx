// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks'
import { Logo } from '../ui/icons'
import { Button, Check, Field, Note } from '../ui/parts'
import { sessionOfKey } from './api'
import { begin, signInNote } from './session'

export function SignIn() {
  const [key, setKey] = useState('')
  const [keep, setKeep] = useState(false)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const submit = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    setError('')
    try {
      begin(await sessionOfKey(key.trim()), keep)
    } catch (x) {
      setError((x as Error).message)
      setBusy(false)
    }
  }
  return (
    <main class="signin">
      <form class="card" onSubmit={submit}>
        <div class="head">
          <Logo size={44} />
          <h1>Cloche</h1>
          <p>Sandboxes under glass</p>
        </div>
        {signInNote.value && <Note kind="warm">{signInNote.value}</Note>}
        <Field
          label="API key"
          error={error}
          hint={
            <>
              One that <code>make serve</code> or <code>cloche key create</code> printed
            </>
          }
        >
          {(id) => (
            <input
              id={id}
              type="password"
              autocomplete="off"
              spellcheck={false}
              placeholder="e2b_…"
              value={key}
              autofocus
              onInput={(e) => setKey(e.currentTarget.value)}
            />
          )}
        </Field>
        <Check
          label="Keep it in this browser"
          checked={keep}
          onChange={setKeep}
          hint="Else it is in memory and gone with this tab"
        />
        <Button kind="primary" type="submit" busy={busy} disabled={!key.trim()}>
          Sign in
        </Button>
        <p class="alt">
          No key at hand? On the server, <code>cloche open</code> prints a link that signs in once.
        </p>
      </form>
    </main>
  )
}
