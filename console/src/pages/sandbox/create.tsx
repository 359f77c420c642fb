// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks'
import { get, post } from '../../app/api'
import { usePoll } from '../../app/poll'
import { readList, readVariables } from '../../lib/format'
import { templateName, type Template } from '../../lib/types'
import { Button, Check, Dialog, Field, Note } from '../../ui/parts'

const TIMES = [300, 900, 3600, 14400, 86400]
const TIME_NAMES: Record<number, string> = {
  300: '5 minutes',
  900: '15 minutes',
  3600: '1 hour',
  14400: '4 hours',
  86400: '24 hours',
}

async function allTemplates(signal: AbortSignal): Promise<Template[]> {
  const [own, shared] = await Promise.all([
    get<Template[]>('/templates', { signal }),
    get<Template[]>('/default-templates', { signal }).catch(() => []),
  ])
  const seen = new Set(own.map((t) => t.templateID))
  return [...own, ...shared.filter((t) => !seen.has(t.templateID))]
}

/** The interpreter first: it is what the notebook needs. */
function preferred(list: Template[]): string {
  const best = list.find((t) => templateName(t).startsWith('code-interpreter')) ?? list[0]
  return best ? templateName(best) : ''
}

export function CreateDialog({
  onClose,
  onCreated,
  template,
}: {
  onClose: () => void
  onCreated: (id: string) => void
  template?: string
}) {
  const templates = usePoll(allTemplates, 0, [])
  const [ref, setRef] = useState(template ?? '')
  const [seconds, setSeconds] = useState(900)
  const [atEnd, setAtEnd] = useState<'kill' | 'pause'>('kill')
  const [autoResume, setAutoResume] = useState(false)
  const [internet, setInternet] = useState(true)
  const [variables, setVariables] = useState('')
  const [labels, setLabels] = useState('')
  const [mounts, setMounts] = useState('')
  const [allowed, setAllowed] = useState('')
  const [denied, setDenied] = useState('')
  const [more, setMore] = useState(false)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const list = templates.data ?? []
  const chosen = ref || preferred(list)
  const envs = readVariables(variables)
  const meta = readVariables(labels)
  const volumes = readVariables(mounts)
  const [allowOut, denyOut] = [readList(allowed), readList(denied)]
  const size = list.find((t) => templateName(t) === chosen)
  const submit = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    setError('')
    try {
      const made = await post<{ sandboxID: string }>('/v2/sandboxes', {
        templateID: chosen,
        timeout: seconds,
        autoPause: atEnd === 'pause',
        autoResume: { enabled: atEnd === 'pause' && autoResume },
        allow_internet_access: internet,
        ...(allowOut.length + denyOut.length > 0 && internet && { network: { allowOut, denyOut } }),
        ...(Object.keys(volumes.values).length > 0 && {
          volumeMounts: Object.entries(volumes.values).map(([name, path]) => ({ name, path })),
        }),
        envVars: envs.values,
        metadata: meta.values,
      })
      onCreated(made.sandboxID)
    } catch (x) {
      setError((x as Error).message)
      setBusy(false)
    }
  }
  return (
    <Dialog title="New sandbox" onClose={onClose}>
      <form onSubmit={submit}>
        <div class="body">
          <Field
            label="Template"
            hint={
              size
                ? `${size.cpuCount} processors, ${size.memoryMB} MB memory, ${Math.round((size.diskSizeMB ?? 0) / 1024)} GB disk`
                : 'A name, name:tag, an id or a snapshot'
            }
          >
            {(id) => (
              <>
                <input
                  id={id}
                  type="text"
                  list="template-names"
                  value={chosen}
                  onInput={(e) => setRef(e.currentTarget.value)}
                  required
                />
                <datalist id="template-names">
                  {list.map((t) => (
                    <option key={t.templateID} value={templateName(t)} />
                  ))}
                </datalist>
              </>
            )}
          </Field>
          <div class="two">
            <Field label="Lives for">
              {(id) => (
                <select id={id} value={seconds} onChange={(e) => setSeconds(Number(e.currentTarget.value))}>
                  {TIMES.map((t) => (
                    <option key={t} value={t}>
                      {TIME_NAMES[t]}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            <Field label="Then">
              {(id) => (
                <select id={id} value={atEnd} onChange={(e) => setAtEnd(e.currentTarget.value as 'kill' | 'pause')}>
                  <option value="kill">it ends</option>
                  <option value="pause">it is paused, with its memory</option>
                </select>
              )}
            </Field>
          </div>
          {atEnd === 'pause' && (
            <Check
              label="Requests resume it"
              checked={autoResume}
              onChange={setAutoResume}
              hint="Traffic to a port or a call wakes it up"
            />
          )}
          <Check label="May reach the internet" checked={internet} onChange={setInternet} />
          <button type="button" class="textlink" aria-expanded={more} onClick={() => setMore(!more)}>
            {more ? 'Fewer settings' : 'Variables, metadata, network and volumes'}
          </button>
          {more && (
            <>
              <Field label="Environment variables" hint="One NAME=value per line" error={envs.error}>
                {(id) => (
                  <textarea id={id} rows={3} value={variables} onInput={(e) => setVariables(e.currentTarget.value)} />
                )}
              </Field>
              <Field label="Metadata" hint="One name=value per line; shown in lists and events" error={meta.error}>
                {(id) => (
                  <textarea id={id} rows={2} value={labels} onInput={(e) => setLabels(e.currentTarget.value)} />
                )}
              </Field>
              {internet && (
                <div class="two">
                  <Field label="Always allowed" hint="Names, addresses, ranges">
                    {(id) => (
                      <textarea id={id} rows={2} value={allowed} onInput={(e) => setAllowed(e.currentTarget.value)} />
                    )}
                  </Field>
                  <Field label="Denied" hint="Addresses, ranges; 0.0.0.0/0 is all">
                    {(id) => (
                      <textarea id={id} rows={2} value={denied} onInput={(e) => setDenied(e.currentTarget.value)} />
                    )}
                  </Field>
                </div>
              )}
              <Field label="Volumes" hint="One name=/path per line" error={volumes.error}>
                {(id) => (
                  <textarea id={id} rows={2} value={mounts} onInput={(e) => setMounts(e.currentTarget.value)} />
                )}
              </Field>
            </>
          )}
          {error && <Note kind="bad">{error}</Note>}
        </div>
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy} disabled={!chosen || !!envs.error || !!meta.error || !!volumes.error}>
            Create
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}
