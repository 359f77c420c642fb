/* SPDX-License-Identifier: Apache-2.0 */
/* login_code.c - see login_code.h. */
#include "warden/core/login_code.h"

/* The team's own that ends first, where it has all it may have; NULL: it may have one more. */
static struct login_code *own_place(struct login_codes *c, struct str team, int64_t now_us)
{
  struct login_code *first = NULL;
  size_t have = 0;
  for (size_t i = 0; i < LOGIN_CODES_MAX; i++) {
    struct login_code *k = &c->codes[i];
    if (k->until_us <= now_us || !str_is(team, k->team))
      continue;
    have++;
    if (!first || k->until_us < first->until_us)
      first = k;
  }
  return have < LOGIN_CODES_TEAM ? NULL : first;
}

static struct login_code *free_place(struct login_codes *c, int64_t now_us)
{
  struct login_code *best = &c->codes[0];
  for (size_t i = 0; i < LOGIN_CODES_MAX; i++) {
    struct login_code *k = &c->codes[i];
    if (!k->team[0] || k->until_us <= now_us)
      return k;
    if (k->until_us < best->until_us)
      best = k;
  }
  return best;
}

void login_code_hash(struct str text, uint8_t hash[SHA256_LEN])
{
  sha256_of(text.p, text.n, hash);
}

void login_code_make(struct login_codes *c, struct str team, int64_t now_us, unsigned seconds,
                     char text[LOGIN_CODE_TEXT])
{
  uint8_t raw[(LOGIN_CODE_TEXT - 1) / 2];
  struct login_code *own = own_place(c, team, now_us), *k = own ? own : free_place(c, now_us);
  random_bytes(raw, sizeof(raw));
  hex_encode(raw, sizeof(raw), text);
  login_code_hash((struct str){text, LOGIN_CODE_TEXT - 1}, k->hash);
  str_copyz(str_sub(team, 0, sizeof(k->team) - 1), k->team, sizeof(k->team));
  k->until_us = now_us + (int64_t)seconds * 1000000;
}

int login_code_use(struct login_codes *c, struct str hash, int64_t now_us, char team[UUID_SIZE])
{
  int found = -EACCES;
  for (size_t i = 0; i < LOGIN_CODES_MAX; i++) { /* all of them, whichever it is */
    struct login_code *k = &c->codes[i];
    bool same = hash.n == SHA256_LEN && str_eq_secret(hash, str_make(k->hash, SHA256_LEN));
    if (!same || !k->team[0] || k->until_us <= now_us)
      continue;
    memcpy(team, k->team, UUID_SIZE);
    *k = (struct login_code){0};
    found = 0;
  }
  return found;
}
