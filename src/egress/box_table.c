/* SPDX-License-Identifier: Apache-2.0 */
/* box_table.c - boxes by their addresses, and the policies that hold for them.
 *
 * A policy is one immutable object with counted references: connections go on under the one that they began with where
 * that matters (which names are inspected, which proxy is used), and each request takes the box's present one for its
 * headers. What holds secrets is wiped when the last reference goes. */
#include "egress/gateway.h"

#include "net/cert.h"
#include <openssl/x509.h>

static struct str key_of(const uint32_t *address)
{
  return str_make(address, sizeof(*address));
}

struct egress_box *egress_box_find(struct gateway *g, uint32_t address)
{
  return map_get(&g->boxes, key_of(&address));
}

void bytes_wipe(struct buf *b)
{
  if (b->p)
    explicit_bzero(b->p, b->cap);
  buf_free(b);
}

/* ---- policies ---- */

struct rules *rules_ref(struct rules *r)
{
  r->refs++;
  return r;
}

void rules_unref(struct rules *r)
{
  if (!r || --r->refs)
    return;
  tls_free(r->proxy_tls);
  arena_free(&r->arena);
  bytes_wipe(&r->packed);
  free(r);
}

static int open_proxy_trust(struct rules *r, struct err *err)
{
  const struct egress_proxy *x = &r->policy.proxy;
  if (!x->kind || !x->tls || !x->ca.n)
    return 0;
  X509_STORE *roots = X509_STORE_new();
  int n = roots ? tls_roots_add(roots, x->ca) : 0;
  if (n)
    r->proxy_tls = tls_client_verified(roots);
  X509_STORE_free(roots);
  return n ? 0 : err_set(err, -EINVAL, "the proxy's caCert has no readable certificate");
}

/* Takes the bytes of `packed`. */
static struct rules *rules_new(struct buf *packed, struct err *err)
{
  struct rules *r = xcalloc(1, sizeof(*r));
  r->refs = 1;
  r->arena = ARENA_INIT((size_t)16 << 20);
  r->packed = *packed;
  *packed = BUF_INIT(packed->max);
  if (!egress_policy_read(&r->arena, buf_str(&r->packed), &r->policy, err) && !open_proxy_trust(r, err))
    return r;
  rules_unref(r);
  return NULL;
}

/* ---- teams ---- */

static struct team *team_join(struct gateway *g, const char *id)
{
  struct team *t = map_get(&g->teams, str_of(id));
  if (!t) {
    t = xcalloc(1, sizeof(*t));
    str_copyz(str_of(id), t->id, sizeof(t->id));
    map_put(&g->teams, str_of(t->id), t);
  }
  t->refs++;
  return t;
}

static void team_leave(struct gateway *g, struct team *t)
{
  if (!t || --t->refs)
    return;
  map_del(&g->teams, str_of(t->id));
  free(t);
}

/* ---- boxes ---- */

static void leaves_drop(struct egress_box *b)
{
  for (struct leaf *l; (l = b->leaves);) {
    b->leaves = l->next;
    tls_free(l->tls);
    free(l);
  }
  b->nleaves = 0;
  cert_signer_free(steal(&b->signer));
}

static void minted_drop(struct egress_box *b)
{
  for (struct minted *m; (m = b->minted);) {
    b->minted = m->next;
    explicit_bzero((char *)m->value.p, m->value.n);
    free((char *)m->value.p);
    free(m);
  }
}

void egress_box_unref(struct egress_box *b)
{
  if (--b->refs)
    return;
  rules_unref(b->rules);
  leaves_drop(b);
  minted_drop(b);
  team_leave(b->gateway, b->team);
  free(b);
}

static void box_end(struct egress_box *b)
{
  map_del(&b->gateway->boxes, key_of(&b->address));
  b->removed = true;
  b->refs++;
  inspect_drop(b);
  for (struct flow *f = b->flows, *next; f; f = next) {
    next = f->next;
    flow_cut(f);
  }
  b->refs--;
  egress_box_unref(b);
}

static struct egress_box *box_new(struct gateway *g, const struct egress_set_body *body)
{
  struct egress_box *b = xcalloc(1, sizeof(*b));
  b->gateway = g;
  b->refs = 1;
  b->address = body->address;
  str_copyz(str_of(body->box), b->id, sizeof(b->id));
  map_put(&g->boxes, key_of(&b->address), b);
  return b;
}

static bool same_authority(const struct rules *a, const struct rules *b)
{
  return a && b && str_eq(a->policy.ca_key, b->policy.ca_key) && str_eq(a->policy.ca_cert, b->policy.ca_cert);
}

int egress_box_set(struct gateway *g, const struct egress_set_body *body, struct buf *packed, struct err *err)
{
  struct egress_box *b = egress_box_find(g, body->address);
  if (b && strcmp(b->id, body->box) != 0 && body->generation >= b->generation) {
    box_end(b);
    b = NULL;
  }
  if (b && body->generation < b->generation)
    return 0; /* overtaken */
  b = b ? b : box_new(g, body);
  b->generation = body->generation;
  b->link = ipc_serial(g->link);
  struct rules *fresh = rules_new(packed, err), *old = b->rules;
  int r = fresh ? 0 : -EINVAL;
  if (fresh && strcmp(fresh->policy.box, body->box) != 0) {
    rules_unref(fresh);
    fresh = NULL;
    r = err_set(err, -EINVAL, "the policy is another box's");
  }
  if (fresh && !b->team)
    b->team = team_join(g, fresh->policy.team);
  if (!same_authority(old, fresh))
    leaves_drop(b);
  b->rules = fresh;
  upstreams_tick(b, UINT64_MAX); /* connections to servers were made by the old one's way */
  rules_unref(old);
  return r;
}

void egress_box_remove(struct gateway *g, const struct egress_set_body *body)
{
  struct egress_box *b = egress_box_find(g, body->address);
  if (b && b->generation <= body->generation)
    box_end(b);
}

void egress_box_sweep(struct gateway *g)
{
  void *value;
  VEC(struct egress_box *) old = {0};
  for (size_t i = 0; map_next(&g->boxes, &i, NULL, &value);) {
    struct egress_box *b = value;
    if (b->link != ipc_serial(g->link))
      vec_push(&old, b);
  }
  for (size_t i = 0; i < old.n; i++)
    box_end(old.p[i]);
  vec_free(&old);
}

/* ---- certificates ---- */

static struct cert_signer *signer_make(const struct egress_policy *p, struct err *err)
{
  cleanup_cert struct cert authority = CERT_INIT;
  buf_adds(&authority.cert, p->ca_cert);
  buf_adds(&authority.key, p->ca_key);
  return cert_signer_new(&authority, err);
}

static struct tls *leaf_make(struct egress_box *b, const char *name, struct err *err)
{
  cleanup_cert struct cert leaf = CERT_INIT;
  unsigned rate = b->gateway->config->leaves_rate; /* each is a signature on the loop */
  if (!bucket_take(&b->signing, uv_now(b->gateway->loop), rate, 2 * rate)) {
    err_set(err, -EAGAIN, "more than %u new names a second", rate);
    return NULL;
  }
  b->signer = b->signer ? b->signer : signer_make(&b->rules->policy, err);
  int r = b->signer ? cert_signer_leaf(b->signer, &name, 1, &leaf, err) : -EINVAL;
  struct tls *t = r ? NULL : tls_server_new();
  if (t && tls_server_load(t, buf_str(&leaf.cert), buf_str(&leaf.key), STR_NONE, err)) {
    tls_free(t);
    t = NULL;
  }
  return t;
}

static void leaf_trim(struct egress_box *b)
{
  struct leaf **at = &b->leaves;
  for (size_t i = 0; *at && i < b->gateway->config->leaves; i++)
    at = &(*at)->next;
  while (*at) {
    struct leaf *l = *at;
    *at = l->next;
    tls_free(l->tls);
    free(l);
    b->nleaves--;
  }
}

struct tls *egress_box_leaf(struct egress_box *b, const char *name, struct err *err)
{
  struct leaf *l = NULL;
  for (struct leaf **at = &b->leaves; *at; at = &(*at)->next)
    if (!strcmp((*at)->name, name)) {
      l = *at;
      *at = l->next;
      break;
    }
  if (!l) {
    struct tls *t = b->rules ? leaf_make(b, name, err) : NULL;
    if (!t)
      return NULL;
    l = xcalloc(1, sizeof(*l));
    l->tls = t;
    str_copyz(str_of(name), l->name, sizeof(l->name));
    b->nleaves++;
  }
  l->next = b->leaves;
  b->leaves = l;
  leaf_trim(b);
  return l->tls;
}
