// SPDX-License-Identifier: Apache-2.0
// Templates: those of the team and the ready-made ones.
import { useState } from 'preact/hooks'
import { get, post } from '../app/api'
import { useCommands } from '../app/commands'
import { usePoll } from '../app/poll'
import { go } from '../app/router'
import { readDockerfile } from '../lib/dockerfile'
import { age, bytes } from '../lib/format'
import { templateName, type Template } from '../lib/types'
import { Button, Dialog, Failed, Field, Link, Loading, Note, PageHead, State } from '../ui/parts'

const FIRST = `FROM base
RUN echo "hello" > /home/user/hello.txt
`

async function all(signal: AbortSignal): Promise<Template[]> {
  const [own, shared] = await Promise.all([
    get<Template[]>('/templates', { signal }),
    get<Template[]>('/default-templates', { signal }).catch(() => []),
  ])
  const seen = new Set(own.map((t) => t.templateID))
  return [...own, ...shared.filter((t) => !seen.has(t.templateID))]
}

function BuildDialog({ names, onClose }: { names: string[]; onClose: () => void }) {
  const [name, setName] = useState('')
  const [text, setText] = useState(FIRST)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const recipe = readDockerfile(text)
  const submit = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    setError('')
    try {
      const made = await post<{ templateID: string; buildID: string }>('/v3/templates', { name: name.trim() })
      const from = names.includes(recipe.from) ? { fromTemplate: recipe.from } : { fromImage: recipe.from }
      const start = recipe.startCmd ? { startCmd: recipe.startCmd, readyCmd: 'sleep 5' } : {}
      await post(`/v2/templates/${made.templateID}/builds/${made.buildID}`, {
        ...from,
        ...start,
        steps: recipe.steps,
      })
      go(`/templates/${made.templateID}/${made.buildID}`)
    } catch (x) {
      setError((x as Error).message)
      setBusy(false)
    }
  }
  return (
    <Dialog title="Build a template" onClose={onClose} wide>
      <form onSubmit={submit}>
        <div class="body">
          <Field label="Name" hint="A name that is there gets a new build">
            {(id) => (
              <input
                id={id}
                type="text"
                value={name}
                placeholder="my-template"
                onInput={(e) => setName(e.currentTarget.value)}
              />
            )}
          </Field>
          <Field
            label="Dockerfile"
            hint="FROM names a template or an image; RUN, ENV, WORKDIR, USER and CMD"
            error={recipe.error}
          >
            {(id) => (
              <textarea
                id={id}
                rows={12}
                spellcheck={false}
                value={text}
                onInput={(e) => setText(e.currentTarget.value)}
              />
            )}
          </Field>
          {error && <Note kind="bad">{error}</Note>}
        </div>
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy} disabled={!name.trim() || !!recipe.error}>
            Build
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}

export default function Templates() {
  const { data, error, refresh } = usePoll(all, 4000, [])
  const [building, setBuilding] = useState(false)
  useCommands(
    [{ id: 'tpl-build', label: 'Build a template', group: 'Templates', keys: 'n', run: () => setBuilding(true) }],
    [],
  )
  if (error && !data) return <Failed error={error} retry={refresh} />
  return (
    <>
      <PageHead title="Templates" sub="What sandboxes start from">
        <Button kind="primary" icon="plus" onClick={() => setBuilding(true)}>
          Build a template
        </Button>
      </PageHead>
      {!data ? (
        <Loading />
      ) : (
        <div class="tablewrap">
          <table class="list stack">
            <thead>
              <tr>
                <th>Name</th>
                <th>State</th>
                <th>Size</th>
                <th>Builds</th>
                <th>Sandboxes</th>
                <th>Changed</th>
              </tr>
            </thead>
            <tbody>
              {data.map((t) => (
                <tr key={t.templateID}>
                  <td class="name">
                    {t.isDefault ? templateName(t) : <Link to={`/templates/${t.templateID}`}>{templateName(t)}</Link>}{' '}
                    {t.isDefault && <span class="tag">ready-made</span>}{' '}
                    {t.public && !t.isDefault && <span class="tag">public</span>}
                  </td>
                  <td>
                    <State
                      is={t.buildStatus === 'ready' ? 'good' : t.buildStatus === 'error' ? 'bad' : 'warm'}
                      word={t.buildStatus ?? 'ready'}
                    />
                  </td>
                  <td class="soft num">
                    {t.cpuCount} cpu, {bytes(t.memoryMB * 1048576)}
                  </td>
                  <td class="soft num">
                    {t.buildCount}
                    <span class="narrow-only"> builds</span>
                  </td>
                  <td class="soft num">
                    {t.spawnCount}
                    <span class="narrow-only"> sandboxes</span>
                  </td>
                  <td class="soft num">{age(t.updatedAt)} ago</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {building && (
        <BuildDialog
          names={(data ?? []).flatMap((t) => [templateName(t), ...(t.aliases ?? [])])}
          onClose={() => setBuilding(false)}
        />
      )}
    </>
  )
}
