// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { readDockerfile } from '../src/lib/dockerfile'

test('a typed Dockerfile becomes steps', () => {
  const r = readDockerfile(`# comment
FROM base
RUN apt-get update && \\
    apt-get install -y jq
ENV A=1 B="two words" C='x'
WORKDIR /app
USER user
RUN ["echo", "it's"]
CMD python3 -m http.server`)
  expect(r.error).toBeUndefined()
  expect(r.from).toBe('base')
  expect(r.startCmd).toBe('python3 -m http.server')
  expect(r.steps).toEqual([
    { type: 'RUN', args: ['apt-get update && \n    apt-get install -y jq'] },
    { type: 'ENV', args: ['A', '1', 'B', 'two words', 'C', 'x'] },
    { type: 'WORKDIR', args: ['/app'] },
    { type: 'USER', args: ['user'] },
    { type: 'RUN', args: [`'echo' 'it'\\''s'`] },
  ])
})

test('what can’t be built says why', () => {
  expect(readDockerfile('RUN ls').error).toContain('FROM comes first')
  expect(readDockerfile('').error).toContain('FROM is missing')
  expect(readDockerfile('FROM a\nFROM b').error).toContain('only one')
  expect(readDockerfile('FROM a\nCOPY . .').error).toContain('COPY')
  expect(readDockerfile('FROM a\nENV x').error).toContain('NAME=value')
})
