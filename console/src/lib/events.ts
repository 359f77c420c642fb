// SPDX-License-Identifier: Apache-2.0
import type { LifecycleEvent } from './types'

const KIND: Record<string, 'good' | 'warm' | 'bad' | 'off'> = {
  created: 'good',
  resumed: 'good',
  paused: 'warm',
  killed: 'bad',
}

export function eventKind(type: string): { is: 'good' | 'warm' | 'bad' | 'off'; word: string } {
  const word = type.split('.').pop() ?? type
  return { is: KIND[word] ?? 'off', word }
}

/** What an event tells beyond its type, without nesting. */
export function eventWords(data: LifecycleEvent['eventData']): string {
  if (!data) return ''
  if (typeof data.kill_cause === 'string') return data.kill_cause
  return Object.entries(data)
    .filter(([, v]) => typeof v !== 'object')
    .map(([k, v]) => `${k.replace(/_/g, ' ')}: ${String(v)}`)
    .join(', ')
}
