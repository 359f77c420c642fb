/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - open addressing with tombstones; SipHash-1-3 under a key drawn once per process. */
#include "base/map.h"
#include "base/core.h"

#include <sys/random.h>

static uint64_t sip_key[2];

static uint64_t rotl(uint64_t x, int b)
{
  return (x << b) | (x >> (64 - b));
}

static void sip_round(uint64_t v[4])
{
  v[0] += v[1];
  v[1] = rotl(v[1], 13) ^ v[0];
  v[0] = rotl(v[0], 32);
  v[2] += v[3];
  v[3] = rotl(v[3], 16) ^ v[2];
  v[0] += v[3];
  v[3] = rotl(v[3], 21) ^ v[0];
  v[2] += v[1];
  v[1] = rotl(v[1], 17) ^ v[2];
  v[2] = rotl(v[2], 32);
}

static uint64_t sip_hash(struct str s)
{
  if (!sip_key[0])
    while (getrandom(sip_key, sizeof(sip_key), 0) != sizeof(sip_key) || !sip_key[0])
      ;
  uint64_t v[4] = {sip_key[0] ^ 0x736f6d6570736575u, sip_key[1] ^ 0x646f72616e646f6du, sip_key[0] ^ 0x6c7967656e657261u,
                   sip_key[1] ^ 0x7465646279746573u};
  size_t i = 0;
  for (; i + 8 <= s.n; i += 8) {
    uint64_t m;
    memcpy(&m, s.p + i, 8);
    v[3] ^= m;
    sip_round(v);
    v[0] ^= m;
  }
  uint64_t last = (uint64_t)s.n << 56;
  for (size_t k = 0; i + k < s.n; k++)
    last |= (uint64_t)(unsigned char)s.p[i + k] << (8 * k);
  v[3] ^= last;
  sip_round(v);
  v[0] ^= last;
  v[2] ^= 0xff;
  for (int k = 0; k < 3; k++)
    sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static char tomb[1]; /* key of a deleted slot */

static struct map_slot *probe(const struct map *m, struct str key, uint64_t hash, struct map_slot **free_slot)
{
  struct map_slot *spare = NULL;
  for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
    struct map_slot *s = &m->slots[i];
    if (!s->key) {
      if (free_slot)
        *free_slot = spare ? spare : s;
      return NULL;
    }
    if (s->key == tomb)
      spare = spare ? spare : s;
    else if (s->hash == hash && str_eq((struct str){s->key, s->klen}, key))
      return s;
  }
}

static void map_resize(struct map *m, size_t cap)
{
  struct map_slot *old = m->slots;
  size_t n = m->cap;
  m->slots = xcalloc(cap, sizeof(*m->slots));
  m->cap = cap;
  m->dead = 0;
  for (size_t i = 0; i < n; i++) {
    if (!old[i].key || old[i].key == tomb)
      continue;
    struct map_slot *to = NULL;
    probe(m, (struct str){old[i].key, old[i].klen}, old[i].hash, &to);
    *to = old[i];
  }
  free(old);
}

void *map_get(const struct map *m, struct str key)
{
  if (!m->n)
    return NULL;
  struct map_slot *s = probe(m, key, sip_hash(key), NULL);
  return s ? s->value : NULL;
}

void *map_put(struct map *m, struct str key, void *value)
{
  if ((m->n + m->dead + 1) * 4 > m->cap * 3)
    map_resize(m, m->n * 2 < 8 ? 16 : (m->n * 4 > m->cap * 2 ? m->cap * 2 : m->cap));
  uint64_t hash = sip_hash(key);
  struct map_slot *spare = NULL, *s = probe(m, key, hash, &spare);
  if (s) {
    void *old = s->value;
    s->value = value;
    return old;
  }
  if (spare->key == tomb)
    m->dead--;
  *spare = (struct map_slot){xstrndup(key.n ? key.p : "", key.n), key.n, hash, value};
  m->n++;
  return NULL;
}

void *map_del(struct map *m, struct str key)
{
  if (!m->n)
    return NULL;
  struct map_slot *s = probe(m, key, sip_hash(key), NULL);
  if (!s)
    return NULL;
  void *old = s->value;
  free(s->key);
  *s = (struct map_slot){.key = tomb};
  m->n--;
  m->dead++;
  return old;
}

void map_free(struct map *m)
{
  for (size_t i = 0; i < m->cap; i++)
    if (m->slots[i].key && m->slots[i].key != tomb)
      free(m->slots[i].key);
  free(m->slots);
  *m = (struct map){0};
}

bool map_next(const struct map *m, size_t *i, struct str *key, void **value)
{
  for (; *i < m->cap; (*i)++) {
    struct map_slot *s = &m->slots[*i];
    if (!s->key || s->key == tomb)
      continue;
    if (key)
      *key = (struct str){s->key, s->klen};
    if (value)
      *value = s->value;
    (*i)++;
    return true;
  }
  return false;
}
