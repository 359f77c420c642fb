/* SPDX-License-Identifier: Apache-2.0 */
/* box_egress.c - see box_egress.h. */
#include "warden/core/box_egress.h"

#define SETTINGS_MAX  ((size_t)1 << 20)
#define AUTHORITY_MAX ((size_t)16 << 10)
#define NAMES_MAX     ((size_t)EGRESS_SECRETS_MAX * EGRESS_REF_SIZE)

static struct box_egress *egress_new(struct str settings)
{
  struct box_egress *e = xcalloc(1, sizeof(*e));
  e->settings = BUF_INIT(SETTINGS_MAX);
  e->told = BUF_INIT(SETTINGS_MAX);
  e->cert = BUF_INIT(AUTHORITY_MAX);
  e->key = BUF_INIT(AUTHORITY_MAX);
  e->names = BUF_INIT(NAMES_MAX);
  e->tokens = BUF_INIT(NAMES_MAX);
  buf_adds(&e->settings, settings);
  return e;
}

static void put_tokens(const struct egress_host *h, struct buf *out)
{
  for (size_t i = 0; i < h->nheaders; i++)
    for (size_t k = 0; k < h->headers[i].npieces; k++)
      if (h->headers[i].pieces[k].kind == EGRESS_IDENTITY) {
        buf_adds(out, h->headers[i].pieces[k].text);
        buf_addc(out, '\n');
      }
}

int box_egress_read(struct str settings, struct str told, struct box_egress **out, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(8 * SETTINGS_MAX);
  struct egress_policy p;
  if (MAX(settings.n, told.n) > SETTINGS_MAX)
    return err_set(err, -EINVAL, "egress settings of %zu bytes; at most %zu are allowed", MAX(settings.n, told.n),
                   SETTINGS_MAX);
  int r = egress_policy_read(&a, settings, &p, err);
  if (r)
    return r;
  *out = egress_new(settings);
  buf_adds(&(*out)->told, told);
  (*out)->rules = p.nhosts > 0;
  (*out)->proxy = p.proxy.kind != EGRESS_DIRECT;
  (*out)->secrets = p.nsecrets > 0;
  for (size_t i = 0; i < p.nhosts; i++)
    put_tokens(&p.hosts[i], &(*out)->tokens);
  for (size_t i = 0; i < p.nsecrets; i++) {
    buf_adds(&(*out)->names, p.secrets[i].name);
    buf_addc(&(*out)->names, '\n');
  }
  return 0;
}

struct box_egress *box_egress_copy(const struct box_egress *e)
{
  if (!e)
    return NULL;
  struct box_egress *copy = egress_new(buf_str(&e->settings));
  buf_adds(&copy->told, buf_str(&e->told));
  copy->rules = e->rules;
  copy->proxy = e->proxy;
  copy->secrets = e->secrets;
  buf_adds(&copy->names, buf_str(&e->names));
  buf_adds(&copy->tokens, buf_str(&e->tokens));
  copy->unread = e->unread;
  return copy;
}

struct box_egress *box_egress_unread(void)
{
  struct box_egress *e = egress_new(STR_NONE);
  e->rules = e->proxy = e->secrets = e->unread = true;
  return e;
}

static void wipe_buf(struct buf *b)
{
  if (b->p)
    explicit_bzero(b->p, b->cap);
  buf_free(b);
}

void box_egress_free(struct box_egress *e)
{
  if (!e)
    return;
  wipe_buf(&e->settings);
  wipe_buf(&e->told);
  wipe_buf(&e->key);
  buf_free(&e->cert);
  buf_free(&e->names);
  buf_free(&e->tokens);
  free(e);
}

bool box_egress_names(const struct box_egress *e, struct str secret)
{
  struct str rest = buf_str(&e->names), line;
  if (e->unread)
    return true; /* it may; what changed is a reason to read it again */
  while (rest.n) {
    str_cut(rest, '\n', &line, &rest);
    if (str_ieq(line, secret))
      return true;
  }
  return e->unread; /* then it may */
}

void box_egress_turn(const struct box_egress *e, struct jail_net *net)
{
  net->egress = !e ? JAIL_EGRESS_NONE : e->proxy ? JAIL_EGRESS_TCP : JAIL_EGRESS_WEB;
  net->quic = e && e->proxy && !e->rules;
}
