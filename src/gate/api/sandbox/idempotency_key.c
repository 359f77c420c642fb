/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency_key.c - see idempotency_key.h. The fingerprint is taken of what the warden is asked for, not of the body:
 * a field that has no effect is not in there, and one that gets an effect one day counts from then on. */
#include "gate/api/sandbox/idempotency_key.h"

#define REQUEST "POST /v2/sandboxes"

int idempotency_key_check(struct str key, struct err *err)
{
  bool good = key.n > 0 && key.n < IDEMPOTENCY_KEY_SIZE;
  for (size_t i = 0; i < key.n; i++) {
    char c = key.p[i];
    good &= (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  }
  return good ? 0
              : err_set(err, -EINVAL,
                        "the header Idempotency-Key must be 1 to %d characters of a-z, 0-9 and '-', not '" STR_FMT
                        "' (%zu characters)",
                        IDEMPOTENCY_KEY_SIZE - 1, STR_ARG(str_sub(key, 0, 40)), key.n);
}

/* ---- the fingerprint ---- */

struct print {
  struct arena *arena;
  struct sha256 hash;
  int failed;
};

static void add_text(struct print *p, char kind, struct str s)
{
  uint64_t n = s.n;
  sha256_add(&p->hash, &kind, 1);
  sha256_add(&p->hash, &n, sizeof(n));
  sha256_add(&p->hash, s.p, s.n);
}

struct member {
  const struct json *value;
  size_t place;
};

static int by_name(const void *a, const void *b)
{
  const struct member *m = a, *n = b;
  struct str x = m->value->key, y = n->value->key;
  int r = memcmp(x.p, y.p, MIN(x.n, y.n));
  r = r ? r : (x.n > y.n) - (x.n < y.n);
  return r ? r : (m->place > n->place) - (m->place < n->place);
}

static void add_value(struct print *p, const struct json *v);

/* Of equal names the last one counts, as it does for who reads the object. */
static void add_object(struct print *p, const struct json *v)
{
  size_t n = 0;
  struct member *list = arena_alloc(p->arena, (v->count + 1) * sizeof(*list));
  if (!list) {
    p->failed = -ENOMEM;
    return;
  }
  for (const struct json *k = v->kids; k; k = k->next, n++)
    list[n] = (struct member){k, n};
  qsort(list, n, sizeof(*list), by_name);
  add_text(p, '{', STR_NONE);
  for (size_t i = 0; i < n; i++) {
    const struct json *k = list[i].value;
    bool again = i + 1 < n && str_eq(k->key, list[i + 1].value->key);
    if (again || (k->type == JSON_OBJECT && !k->count))
      continue;
    add_text(p, 'k', k->key);
    add_value(p, k);
  }
  add_text(p, '}', STR_NONE);
}

static void add_value(struct print *p, const struct json *v)
{
  int64_t whole;
  switch (v->type) {
  case JSON_OBJECT:
    add_object(p, v);
    break;
  case JSON_ARRAY:
    add_text(p, '[', STR_NONE);
    for (const struct json *k = v->kids; k; k = k->next)
      add_value(p, k);
    add_text(p, ']', STR_NONE);
    break;
  case JSON_NUMBER:
    if (!json_int(v, &whole))
      add_text(p, 'i', str_make(&whole, sizeof(whole)));
    else
      add_text(p, 'n', v->text);
    break;
  case JSON_STRING:
    add_text(p, 's', v->text);
    break;
  case JSON_BOOL:
    add_text(p, v->flag ? 't' : 'f', STR_NONE);
    break;
  case JSON_NULL:
    add_text(p, '0', STR_NONE);
    break;
  }
}

static void add_json(struct print *p, struct str text)
{
  struct json_error why;
  const struct json *v = json_read(p->arena, text, 0, &why);
  if (v)
    add_value(p, v);
  else
    p->failed = -ENOMEM; /* the gate has written it: what fails is the arena */
}

int idempotency_fingerprint(struct arena *a, struct str packet, uint8_t out[SHA256_LEN])
{
  struct print p = {.arena = a};
  enum wire_tag tag;
  struct str value;
  sha256_init(&p.hash);
  add_text(&p, 'r', STR(REQUEST));
  for (size_t at = 0; !p.failed && wire_next(packet, &at, &tag, &value);) {
    uint32_t number = tag;
    if (tag == W_ID)
      continue;
    add_text(&p, 'w', str_make(&number, sizeof(number)));
    if (tag == W_CONFIG || tag == W_INIT || tag == W_RULES)
      add_json(&p, value);
    else
      add_text(&p, 'v', value);
  }
  sha256_end(&p.hash, out);
  return p.failed;
}
