/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - see keep.h. A value is four texts, each behind its length: settings, certificate, key, rules as they are
 * told back. Rows of an older server have three, and their rules stand in the box's open row; egress_seal_rules moves
 * them.
 */
#include "warden/egress/keep.h"

#include "warden/core/box_egress.h"
#include "warden/core/box_state.h"
#include "warden/core/warden_state.h"
#include "warden/db/box_egress_store.h"
#include "warden/secret/box_seal.h"
#include "warden/secret/seal.h"

#define REMEDY "its operator finds the remedy in the server's log and with `cloche secret check`"

static void put_text(struct buf *out, const struct buf *text)
{
  uint32_t n = (uint32_t)text->n;
  buf_add(out, &n, sizeof(n));
  buf_add(out, text->p, text->n);
}

int egress_keep(const struct box *b, struct err *err)
{
  const struct box_egress *e = b->egress;
  if (!e)
    return store_box_egress_delete(b->warden->store, b->row.id, err);
  cleanup_wipe struct buf value = BUF_INIT(BOX_SEALED_MAX);
  if (e->unread)
    return err_set(err, -ESHUTDOWN, "the sandbox's rules or proxy can't be read at present; " REMEDY);
  if (buf_reserve(&value, e->settings.n + e->cert.n + e->key.n + e->told.n + 16))
    return err_set(err, -ENOMEM, "no room for the egress settings");
  put_text(&value, &e->settings);
  put_text(&value, &e->cert);
  put_text(&value, &e->key);
  put_text(&value, &e->told);
  int r = buf_failed(&value) ? -ENOMEM : box_seal_put(b->warden, b->row.id, buf_str(&value), err);
  if (r == -ENOKEY)
    return err_set(err, -ESHUTDOWN,
                   "rules and proxies can't be kept at present: the master key of this server is missing or another "
                   "one; " REMEDY);
  return r ? err_set(err, r, "the egress settings can't be kept: %s", strerrordesc_np(-r)) : 0;
}

static int take_text(struct str *rest, struct str *out)
{
  uint32_t n;
  if (rest->n < sizeof(n))
    return -EINVAL;
  memcpy(&n, rest->p, sizeof(n));
  *rest = str_skip(*rest, sizeof(n));
  if (n > rest->n)
    return -EINVAL;
  *out = str_sub(*rest, 0, n);
  *rest = str_skip(*rest, n);
  return 0;
}

/* What was known about the policy at the gateway goes on. */
static void replace(struct box *b, struct box_egress *e)
{
  struct box_egress *old = b->egress;
  if (old) {
    e->wanted = old->wanted;
    e->queued = old->queued;
    e->generation = old->generation;
  }
  b->egress = e;
  box_egress_free(old);
}

static int read_value(struct str value, struct box_egress **out, struct err *err)
{
  struct str settings, cert, key, told = STR_NONE;
  if (take_text(&value, &settings) || take_text(&value, &cert) || take_text(&value, &key) ||
      (value.n && take_text(&value, &told)))
    return err_set(err, -EBADMSG, "malformed egress settings");
  int r = box_egress_read(settings, told, out, err);
  if (r)
    return r;
  buf_adds(&(*out)->cert, cert);
  buf_adds(&(*out)->key, key);
  return 0;
}

int egress_recall(struct box *b, struct err *err)
{
  struct box_egress *e = NULL;
  cleanup_wipe struct buf value = BUF_INIT(BOX_SEALED_MAX);
  int r = box_seal_get(b->warden, b->row.id, &value);
  if (r == -ENOENT && !b->egress)
    return 0;
  if (r)
    err_set(err, -ESHUTDOWN, "the sandbox's rules or proxy can't be read at present (%s); " REMEDY,
            r == -EBADMSG ? "they were changed in the database" : "the master key that sealed them is missing");
  r = r ? -ESHUTDOWN : read_value(buf_str(&value), &e, err);
  if (!r)
    replace(b, e);
  else if (!b->egress)
    b->egress = box_egress_unread();
  return r;
}

/* ---- rows of an older server ---- */

static void put_others(struct jw *w, const struct json *object, const char *name)
{
  jw_open(w, '{');
  for (const struct json *k = object->kids; k; k = k->next) {
    if (str_is(k->key, name))
      continue;
    jw_keys(w, k->key);
    if (str_is(k->key, "network"))
      put_others(w, k, "rules");
    else
      jw_value(w, k);
  }
  jw_close(w, '}');
}

/* False: the open row has no rules. */
static bool split_rules(const char *config, struct buf *open, struct buf *rules)
{
  cleanup_arena struct arena a = ARENA_INIT((size_t)16 << 20);
  const struct json *all = json_read(&a, str_of(config), 0, NULL);
  const struct json *found = json_get(json_get(all, "network"), "rules");
  struct jw left = JW(open), right = JW(rules);
  if (!found)
    return false;
  put_others(&left, all, "");
  jw_value(&right, found);
  return !buf_failed(open) && !buf_failed(rules);
}

static int move_rules(struct box *b, struct err *err)
{
  struct store *s = b->warden->store;
  cleanup_buf struct buf open = BUF_INIT(BOX_SEALED_MAX);
  cleanup_wipe struct buf rules = BUF_INIT(BOX_SEALED_MAX);
  if (!b->egress || b->egress->unread || !b->egress->rules || !split_rules(b->row.config, &open, &rules))
    return 0;
  struct row_box row = b->row;
  row.config = (char *)buf_z(&open);
  b->egress->told.n = 0;
  buf_adds(&b->egress->told, buf_str(&rules));
  int r = store_begin(s, err);
  if (r)
    return r;
  r = egress_keep(b, err);
  r = r ? r : store_box_put(s, &row, err);
  r = store_end(s, r, err);
  if (r)
    return r;
  free(b->row.config);
  b->row.config = xstrdup(row.config);
  return 1;
}

void egress_seal_rules(struct warden *w)
{
  void *value;
  size_t moved = 0;
  struct err err = ERR_NONE;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    struct box *b = value;
    int r = move_rules(b, &err);
    moved += r > 0;
    if (r < 0)
      log_with(LOG_WARN, (const char *[]){"box", b->row.id, NULL}, "its header rules stay unsealed: %s", err.msg);
  }
  if (!moved)
    return;
  int r = store_rewrite(w->store, &err);
  log_info("header rules of %zu sandboxes are sealed now%s%s", moved, r ? "; their old rows may still be read: " : "",
           r ? err.msg : "");
}
