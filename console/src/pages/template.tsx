// SPDX-License-Identifier: Apache-2.0
// One template: its builds, which of them the tags point at, moving tags back, and the log of a build as it comes.
import { useEffect, useState } from 'preact/hooks'
import { del, get, json, patch, post } from '../app/api'
import { usePoll } from '../app/poll'
import { go } from '../app/router'
import { age, clock, dateTime } from '../lib/format'
import type { Params } from '../lib/match'
import { templateName, type LogEntry, type Template } from '../lib/types'
import { NameDialog } from '../ui/name_dialog'
import { Button, Confirm, Copy, Failed, Link, Loading, Menu, PageHead, State } from '../ui/parts'
import { doing, toast } from '../ui/toast'
import { DiffDialog } from './build_diff'
import { CreateDialog } from './sandbox/create'
import { TagHistory } from './tag_history'

interface Build {
  buildID: string
  status: string
  createdAt: string
  finishedAt?: string
}

interface Tag {
  tag: string
  buildID: string
  createdAt: string
}

interface Status {
  status: string
  logEntries: (LogEntry & { step?: string })[]
  reason?: { message: string }
}

const word = (status: string) =>
  status === 'ready' || status === 'uploaded' ? 'good' : status === 'error' ? 'bad' : 'warm'

function BuildLog({ id, build, done }: { id: string; build: string; done: () => void }) {
  const [lines, setLines] = useState<LogEntry[]>([])
  const [status, setStatus] = useState<Status>()
  const [error, setError] = useState<Error>()
  useEffect(() => {
    let over = false
    let timer = 0
    let have: LogEntry[] = []
    setLines([])
    setStatus(undefined)
    const ask = async () => {
      try {
        const s = await get<Status>(`/templates/${id}/builds/${build}/status?logsOffset=${have.length}&limit=100`)
        if (over) return
        have = [...have, ...s.logEntries]
        setLines(have)
        setStatus(s)
        setError(undefined)
        const ended = s.status === 'ready' || s.status === 'error'
        if (ended && s.logEntries.length < 100) return done()
        timer = window.setTimeout(ask, s.logEntries.length === 100 ? 0 : 600)
      } catch (e) {
        if (over) return
        setError(e as Error)
        timer = window.setTimeout(ask, 2000)
      }
    }
    void ask()
    return () => {
      over = true
      clearTimeout(timer)
    }
  }, [id, build])
  return (
    <section class="card">
      <header>
        <h2>Build log</h2> <code>{build.slice(0, 8)}</code>{' '}
        {status && <State is={word(status.status)} word={status.status} />}
      </header>
      {error && <Failed error={error} />}
      <div class="buildlog mono" role="log" aria-label="Build log" tabIndex={0}>
        {lines.map((l, i) => (
          <div key={i} class={l.level}>
            <time class="soft">{clock(l.timestamp)}</time> {l.message}
          </div>
        ))}
        {lines.length === 0 && <span class="soft">{status ? 'Nothing was logged' : 'Loading'}</span>}
      </div>
    </section>
  )
}

export default function TemplatePage({ params }: { params: Params }) {
  const id = params['id']!
  const { data, error, refresh } = usePoll(
    async (signal) => {
      const [t, tags] = await Promise.all([
        get<Template & { builds: Build[] }>(`/templates/${id}`, { signal }),
        get<Tag[]>(`/templates/${id}/tags`, { signal }),
      ])
      return { t, tags }
    },
    3000,
    [id],
  )
  const [asking, setAsking] = useState<{ what: 'delete' | 'create' | 'tag' | 'diff'; build?: Build }>()
  if (error && !data) return <Failed error={error} retry={refresh} />
  if (!data) return <Loading />
  const { t, tags } = data
  const name = templateName(t)
  const shown = params['build'] ?? t.builds[0]?.buildID
  const point = (tag: string, build: string) =>
    doing(
      post('/templates/tags', { target: `${name}:${build}`, tags: [tag] }),
      `${tag} is this build now`,
    ).then(refresh)
  return (
    <>
      <PageHead
        title={
          <span class="crumbs">
            <Link to="/templates">Templates</Link> <span class="soft">/</span> {name}
          </span>
        }
        sub={
          <>
            <code>{id}</code> <Copy text={id} label="Copy the id" /> <span>changed {age(t.updatedAt)} ago</span>
          </>
        }
      >
        <Button kind="primary" icon="play" onClick={() => setAsking({ what: 'create' })}>
          New sandbox
        </Button>
        <Menu
          label="More for this template"
          items={[
            {
              label: t.public ? 'Make private' : 'Publish to all teams',
              icon: 'people',
              run: () => void doing(patch(`/v2/templates/${id}`, { public: !t.public }), 'Changed').then(refresh),
            },
            { label: 'Delete', icon: 'trash', danger: true, run: () => setAsking({ what: 'delete' }) },
          ]}
        />
      </PageHead>
      <div class="tablewrap">
        <table class="list">
          <thead>
            <tr>
              <th>Build</th>
              <th>State</th>
              <th>Tags</th>
              <th>Began</th>
              <th class="end">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {t.builds.map((b) => (
              <tr key={b.buildID}>
                <td class="name">
                  <Link to={`/templates/${id}/${b.buildID}`} class="mono">
                    {b.buildID.slice(0, 8)}
                  </Link>
                </td>
                <td>
                  <State is={word(b.status)} word={b.status} />
                </td>
                <td>
                  {tags
                    .filter((x) => x.buildID === b.buildID)
                    .map((x) => (
                      <span key={x.tag} class="tag">
                        {x.tag}
                      </span>
                    ))}
                </td>
                <td class="soft num">{dateTime(b.createdAt)}</td>
                <td class="end">
                  <Menu
                    label={`Actions of build ${b.buildID.slice(0, 8)}`}
                    items={[
                      {
                        label: 'Roll back: make it the default',
                        icon: 'refresh',
                        run: () => void point('default', b.buildID),
                      },
                      { label: 'Compare', icon: 'list', run: () => setAsking({ what: 'diff', build: b }) },
                      { label: 'Add a tag', icon: 'plus', run: () => setAsking({ what: 'tag', build: b }) },
                      ...tags
                        .filter((x) => x.buildID === b.buildID && x.tag !== 'default')
                        .map((x) => ({
                          label: `Remove the tag ${x.tag}`,
                          icon: 'close' as const,
                          run: () =>
                            void doing(
                              json('DELETE', '/templates/tags', { body: { name, tags: [x.tag] } }),
                              'Removed',
                            ).then(refresh),
                        })),
                    ]}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {t.builds.length === 0 && <p class="none">No build yet</p>}
      </div>
      {shown && <BuildLog id={id} build={shown} done={refresh} />}
      <TagHistory
        id={id}
        stamp={tags.map((x) => `${x.tag} ${x.buildID}`).join()}
        back={(tag, build) => void point(tag, build)}
      />
      {asking?.what === 'create' && (
        <CreateDialog
          template={name}
          onClose={() => setAsking(undefined)}
          onCreated={(box) => go(`/sandboxes/${box}`)}
        />
      )}
      {asking?.what === 'tag' && asking.build && (
        <NameDialog
          title="Add a tag"
          word="Add"
          value=""
          onClose={() => setAsking(undefined)}
          run={(tag) => point(tag, asking.build!.buildID)}
        />
      )}
      {asking?.what === 'diff' && asking.build && (
        <DiffDialog
          id={id}
          builds={t.builds}
          tags={tags}
          to={asking.build.buildID}
          onClose={() => setAsking(undefined)}
        />
      )}
      {asking?.what === 'delete' && (
        <Confirm
          title={`Delete ${name}?`}
          word="Delete"
          text="All its builds and tags go. Sandboxes that run stay."
          onClose={() => setAsking(undefined)}
          run={() =>
            del(`/templates/${id}`).then(() => {
              toast('Deleted')
              go('/templates')
            })
          }
        />
      )}
    </>
  )
}
