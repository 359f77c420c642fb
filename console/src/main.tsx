// SPDX-License-Identifier: Apache-2.0
import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { sessionOfCode } from './app/api'
import { begin, restore, session, signInNote, takeLoginCode } from './app/session'
import { Shell } from './app/shell'
import { SignIn } from './app/signin'
import './app/theme'
import './styles/base.css'
import { Loading } from './ui/parts'

const code = takeLoginCode()
if (!code) restore()

function App() {
  const [waiting, setWaiting] = useState(code !== null)
  useEffect(() => {
    if (!code) return
    sessionOfCode(code)
      .then(
        (s) => begin(s, false),
        (e: Error) => (signInNote.value = e.message),
      )
      .finally(() => setWaiting(false))
  }, [])
  if (waiting) return <Loading what="Signing in" />
  return session.value ? <Shell /> : <SignIn />
}

render(<App />, document.getElementById('app')!)
