/* SPDX-License-Identifier: Apache-2.0 */
/* workload_identity.c - see workload_identity.h. */
#include "warden/secret/workload_identity.h"

#include "warden/core/context.h"
#include "warden/core/reply.h"
#include "warden/db/identity_store.h"
#include "warden/secret/jwt.h"
#include "warden/secret/secrets.h"
#include <stdio.h>

#define DAY_US     86400000000ll
#define SKEW_US    300000000ll /* clocks of those who verify */
#define LABEL_SIZE 128

static struct jwt_key *current; /* the one that signs, opened at its first use */
static int64_t current_us;      /* made then */

/* ---- names ---- */

/* The line of this name; audience p NULL: there is none. */
static struct str audience_of(const struct row_box *row, struct str name)
{
  struct str rest = str_of(row->tokens ? row->tokens : ""), line, key, audience;
  while (rest.n) {
    str_cut(rest, '\n', &line, &rest);
    if (str_cut(line, '\t', &key, &audience) && str_eq(key, name))
      return audience;
  }
  return STR_NONE;
}

bool identity_has(const struct row_box *row, struct str name)
{
  return audience_of(row, name).p != NULL;
}

/* ---- keys ---- */

static struct str label_of(const struct row_identity_key *r, char out[LABEL_SIZE])
{
  int n = snprintf(out, LABEL_SIZE, "identity%c%s", 0, r->id);
  return (struct str){out, (size_t)n};
}

static int64_t valid_us(const struct warden *w)
{
  return (int64_t)warden_config(w)->identity_token_s * 1000000 + SKEW_US;
}

static int make_key(struct warden *w, struct err *err)
{
  struct jwt_key *key = NULL;
  char label[LABEL_SIZE];
  struct row_identity_key row = {.created_us = clock_wall_us(), .sealed = BUF_INIT(4096)};
  cleanup_wipe struct buf der = BUF_INIT(JWT_DER_MAX);
  if (!secrets_ready(w, err))
    return -ENOKEY;
  int r = jwt_key_make(&key, err);
  if (r)
    return r;
  const struct jwt_public *p = jwt_key_public(key);
  memcpy(row.id, p->id, sizeof(p->id));
  memcpy(row.x, p->x, sizeof(p->x));
  memcpy(row.y, p->y, sizeof(p->y));
  r = buf_reserve(&der, JWT_DER_MAX - 1);
  r = r ? r : jwt_key_write(key, &der);
  r = r ? r : secrets_seal(w, label_of(&row, label), buf_str(&der), row.key, &row.sealed);
  if (r)
    err_set(err, r, "the signing key of identity tokens could not be sealed");
  r = r ? r : store_identity_key_add(warden_store(w), &row, row.created_us + valid_us(w), err);
  buf_free(&row.sealed);
  if (r) {
    jwt_key_free(key);
    return r;
  }
  jwt_key_free(current);
  current = key;
  current_us = row.created_us;
  cleanup_buf struct buf news = BUF_INIT(256);
  wire_begin(&news, WIRE_KEYS_CHANGED, 0, 0);
  reply_broadcast(w, buf_str(&news)); /* gates tell the new one before the first token of it is out */
  log_info("identity tokens are signed by the key %s now", row.id);
  return 0;
}

static int open_key(struct warden *w, struct err *err)
{
  struct row_identity_key row;
  char label[LABEL_SIZE];
  cleanup_wipe struct buf der = BUF_INIT(JWT_DER_MAX);
  if (store_identity_key_current(warden_store(w), &row))
    return make_key(w, err);
  int r = buf_reserve(&der, JWT_DER_MAX - 1);
  r = r ? r : secrets_unseal(w, row.key, label_of(&row, label), buf_str(&row.sealed), &der);
  current_us = row.created_us;
  buf_free(&row.sealed);
  if (r)
    return err_set(err, r,
                   "identity tokens can't be signed: their key is sealed by a master key that is missing, or was "
                   "changed; `cloche secret check` says more");
  return jwt_key_read(buf_str(&der), &current, err);
}

/* Opened, or made; another one when it is old. */
static int need_key(struct warden *w, struct err *err)
{
  unsigned days = warden_config(w)->identity_key_days;
  int r = current ? 0 : open_key(w, err);
  if (!r && days && clock_wall_us() - current_us > days * DAY_US && secrets_ready(w, NULL))
    make_key(w, err); /* the old one signs on when this fails */
  return r;
}

bool identity_ready(struct warden *w, struct err *err)
{
  return !need_key(w, err);
}

int identity_rotate(struct warden *w, struct err *err)
{
  return make_key(w, err);
}

static int put_key(const struct row_identity_key *r, void *arg)
{
  struct jwt_public p;
  memcpy(p.id, r->id, sizeof(p.id));
  memcpy(p.x, r->x, sizeof(p.x));
  memcpy(p.y, r->y, sizeof(p.y));
  jwt_public_put(arg, &p);
  return 0;
}

void identity_published(struct warden *w, struct buf *jwks)
{
  struct jw out = JW(jwks);
  need_key(w, NULL);
  store_identity_keys_forget(warden_store(w), clock_wall_us());
  jw_open(&out, '{');
  jw_key(&out, "keys");
  jw_open(&out, '[');
  store_identity_keys(warden_store(w), put_key, &out);
  jw_close(&out, ']');
  jw_close(&out, '}');
}

struct resealing {
  struct warden *warden;
  uint64_t *failed;
  struct err *err;
};

static int reseal_key(const struct row_identity_key *r, void *arg)
{
  struct resealing *c = arg;
  char label[LABEL_SIZE];
  struct row_identity_key to = *r;
  if (!r->sealed.n) /* it signs no more */
    return 0;
  to.sealed = BUF_INIT(4096);
  int k = secrets_rewrap(c->warden, r->key, label_of(r, label), buf_str(&r->sealed), to.key, &to.sealed);
  *c->failed += k == -EBADMSG; /* one whose master key is missing has no use for the others */
  k = k ? 0 : store_identity_key_reseal(warden_store(c->warden), &to, c->err);
  buf_free(&to.sealed);
  return k;
}

int identity_reseal(struct warden *w, uint64_t *failed, struct err *err)
{
  struct resealing c = {w, failed, err};
  return store_identity_keys(warden_store(w), reseal_key, &c);
}

void identity_close(void)
{
  jwt_key_free(current);
  current = NULL;
}

/* ---- tokens ---- */

/* A domain as SPIFFE has them: lower case, no port. */
static void trust_domain(const struct warden *w, char out[DOMAIN_SIZE])
{
  const struct warden_config *c = warden_config(w);
  struct str from = str_of(c->identity_trust_domain[0] ? c->identity_trust_domain : c->domain), rest;
  str_cut(from, ':', &from, &rest);
  if (!from.n || from.n >= DOMAIN_SIZE)
    from = STR("cloche");
  for (size_t i = 0; i < from.n; i++)
    out[i] = from.p[i] >= 'A' && from.p[i] <= 'Z' ? (char)(from.p[i] + 32) : from.p[i];
  out[from.n] = 0;
}

/* A box that asks often uses each token for a second: how much the loop signs is not for boxes to choose. Boxes of one
 * slot share its count. */
static bool asks_often(const struct warden *w, const struct row_box *row, int64_t now)
{
  static struct {
    int64_t second;
    unsigned n;
  } counts[256];
  uint32_t slot = crc32c(0, row->id, strlen(row->id)) % ARRAY_LEN(counts);
  if (counts[slot].second != now) {
    counts[slot].second = now;
    counts[slot].n = 0;
  }
  return ++counts[slot].n > warden_config(w)->identity_tokens_per_s;
}

static void put_time(struct jw *w, const char *name, int64_t seconds)
{
  jw_key(w, name);
  jw_int(w, seconds);
}

int identity_token(struct warden *w, const struct row_box *row, struct str name, struct buf *out, unsigned *reuse_s,
                   struct err *err)
{
  struct str audience = audience_of(row, name);
  const struct warden_config *c = warden_config(w);
  char domain[DOMAIN_SIZE], id[UUID_TEXT];
  int64_t now = clock_wall_us() / 1000000;
  if (!audience.p)
    return err_set(err, -ENOENT, "the sandbox has no identity token of this name");
  int r = need_key(w, err);
  if (r)
    return r;
  trust_domain(w, domain);
  uuid4(id);
  cleanup_buf struct buf claims = BUF_INIT(IDENTITY_TOKEN_MAX / 2), subject = BUF_INIT(1024);
  struct jw j = JW(&claims);
  buf_addf(&subject, "spiffe://%s/team/%s/sandbox/%s", domain, row->team, row->id);
  jw_open(&j, '{');
  if (c->identity_issuer[0]) {
    jw_key(&j, "iss");
    jw_z(&j, c->identity_issuer);
  }
  jw_key(&j, "sub");
  jw_str(&j, buf_str(&subject));
  jw_key(&j, "aud");
  jw_str(&j, audience);
  put_time(&j, "iat", now);
  put_time(&j, "exp", now + c->identity_token_s);
  jw_key(&j, "jti");
  jw_z(&j, id);
  jw_close(&j, '}');
  *reuse_s = asks_often(w, row, now); /* else once: each has an id of its own, which some receivers take once */
  return buf_failed(&claims) ? err_set(err, -ENOBUFS, "the token is too large")
                             : jwt_sign(current, buf_str(&claims), out, err);
}
