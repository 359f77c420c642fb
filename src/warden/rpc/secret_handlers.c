/* SPDX-License-Identifier: Apache-2.0 */
/* secret_handlers.c - secrets of a team, and the master key. A value comes in and never goes out; no message holds
 * anything of a request. */
#include "warden/rpc/handlers.h"

#include "warden/core/context.h"
#include "warden/box/box.h"
#include "warden/secret/secrets.h"
#include "warden/secret/workload_identity.h"
#include <stdio.h>

#define PAGE_MAX     100
#define METADATA_MAX 65536 /* of its JSON text, in which each byte may be escaped */

static void put_secret(struct buf *b, const struct row_secret *r)
{
  wire_putz(b, W_ID, r->id);
  wire_putz(b, W_TEAM, r->team);
  wire_putz(b, W_NAME, r->name);
  wire_put_u64(b, W_VERSION, r->version);
  wire_putz(b, W_METADATA, r->metadata);
  wire_put_u64(b, W_CREATED, (uint64_t)r->created_us);
  wire_put_u64(b, W_UPDATED, (uint64_t)r->updated_us);
}

static void reply_secret(struct request *q, const struct row_secret *r)
{
  reply_begin(q, WIRE_REPLY, 0);
  put_secret(q->out, r);
  reply_send(q);
}

/* The gate has turned it to lower case. */
static int check_name(struct str name)
{
  bool good = name.n && name.n < SECRET_NAME_SIZE && !str_starts(name, STR("sec_"));
  for (size_t i = 0; i < name.n; i++) {
    char c = name.p[i];
    good &= (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  }
  return good ? 0 : -EINVAL;
}

static int find(struct request *q, struct str ref, struct row_secret *out)
{
  char text[SECRET_NAME_SIZE], team[UUID_SIZE];
  struct store *s = warden_store(q->warden);
  if (str_copyz(q->team, team, sizeof(team)) || str_copyz(ref, text, sizeof(text)))
    return -ENOENT;
  return str_starts(ref, STR("sec_")) ? store_secret_get(s, team, text, out) : store_secret_find(s, team, text, out);
}

/* Why the master key is missing, with the place where it should be, is for who runs the server. */
static void refuse(struct request *q, const struct err *err)
{
  if (err->code == -ENOKEY && q->proven != BY_ROOT)
    reply_error(q, -ENOKEY,
                "secrets are not available: the master key of this server is missing or another one; its operator "
                "finds the remedy in the server's log and with `cloche secret check`");
  else
    reply_err(q, err);
}

/* Answers when it is not there. */
static bool wanted(struct request *q, struct row_secret *out)
{
  if (!find(q, wire_get(q->packet, W_REF), out))
    return true;
  reply_error(q, -ENOENT, "the team has no such secret");
  return false;
}

static int take_metadata(struct request *q, struct row_secret *row, struct err *err)
{
  struct str text = wire_get(q->packet, W_METADATA);
  if (!text.p && row->metadata)
    return 0;
  if (text.n > METADATA_MAX || (text.n && memchr(text.p, 0, text.n)))
    return err_set(err, -EINVAL, "the metadata is too large");
  free(row->metadata);
  row->metadata = text.n ? xstrndup(text.p, text.n) : xstrdup("{}");
  return 0;
}

void handle_secret_create(struct request *q)
{
  struct err err = ERR_NONE;
  struct row_secret row = {0};
  struct str id = wire_get(q->packet, W_ID), name = wire_get(q->packet, W_NAME);
  if (!str_starts(id, STR("sec_")) || check_name(name)) {
    reply_error(q, -EINVAL, "a secret needs an id that begins with sec_ and a name of a-z, 0-9, '_' and '-'");
    return;
  }
  if (!find(q, id, &row)) { /* asked again, behind a warden that died */
    reply_secret(q, &row);
    row_secret_free(&row);
    return;
  }
  int r = str_copyz(id, row.id, sizeof(row.id)) || str_copyz(name, row.name, sizeof(row.name)) ||
                  str_copyz(q->team, row.team, sizeof(row.team))
              ? err_set(&err, -EINVAL, "an id or name is too long")
              : take_metadata(q, &row, &err);
  r = r ? r : secret_create(q->warden, &row, wire_get(q->packet, W_SECRET), &err);
  if (r)
    refuse(q, &err);
  else
    reply_secret(q, &row);
  row_secret_free(&row);
}

static int list_item(const struct row_secret *row, void *arg)
{
  struct request *q = arg;
  reply_begin(q, WIRE_ITEM, 0);
  put_secret(q->out, row);
  reply_send(q);
  return 0;
}

void handle_secret_list(struct request *q)
{
  char team[UUID_SIZE], after[SECRET_ID_SIZE] = "";
  struct str ref = wire_get(q->packet, W_REF);
  uint64_t from = MIN(wire_u64(q->packet, W_FROM, 0), (uint64_t)INT64_MAX);
  unsigned most = (unsigned)MIN(wire_u64(q->packet, W_COUNT, PAGE_MAX), (uint64_t)PAGE_MAX + 1);
  if (str_copyz(q->team, team, sizeof(team)) || (ref.p && str_copyz(ref, after, sizeof(after)))) {
    reply_error(q, -EINVAL, "the listing can't begin there");
    return;
  }
  store_secrets(warden_store(q->warden), team, (int64_t)from, after, most, list_item, q);
  reply_ok(q);
}

void handle_secret_get(struct request *q)
{
  struct row_secret row;
  if (!wanted(q, &row))
    return;
  reply_secret(q, &row);
  row_secret_free(&row);
}

void handle_secret_change(struct request *q)
{
  struct err err = ERR_NONE;
  struct row_secret row;
  char request[UUID_SIZE] = "";
  if (!wanted(q, &row))
    return;
  wire_copyz(q->packet, W_BUILD, request, sizeof(request));
  bool done = request[0] && !strcmp(request, row.request); /* before a warden died */
  int r = done ? 0 : take_metadata(q, &row, &err);
  snprintf(row.request, sizeof(row.request), "%s", request);
  r = r || done ? r : secret_update(q->warden, &row, wire_get(q->packet, W_SECRET), &err);
  if (r)
    refuse(q, &err);
  else
    reply_secret(q, &row);
  row_secret_free(&row);
}

void handle_secret_delete(struct request *q)
{
  struct err err = ERR_NONE;
  struct row_secret row;
  bool again = wire_head(q->packet)->status == WIRE_AGAIN; /* a warden that died may have deleted it */
  if (again && find(q, wire_get(q->packet, W_REF), &row)) {
    reply_ok(q);
    return;
  }
  if (again)
    row_secret_free(&row);
  if (!wanted(q, &row))
    return;
  if (secret_delete(q->warden, &row, &err))
    reply_err(q, &err);
  else
    reply_ok(q);
  row_secret_free(&row);
}

/* ---- the master key ---- */

static void rotated(struct warden *w, const struct err *err, uint64_t resealed, void *arg)
{
  struct origin *o = arg;
  cleanup_buf struct buf out = BUF_INIT(1024);
  wire_begin(&out, WIRE_REPLY, o->id, err ? err->code : 0);
  if (err)
    wire_putz(&out, W_MESSAGE, err->msg);
  wire_put_u64(&out, W_COUNT, resealed);
  reply_packet(w, *o, &out);
  free(o);
}

void handle_secret_rotate(struct request *q)
{
  struct err err = ERR_NONE;
  struct origin *o = xcalloc(1, sizeof(*o));
  *o = request_origin(q);
  if (!secrets_rotate(q->warden, rotated, o, &err))
    return;
  free(o);
  reply_err(q, &err);
}

static void checked(struct warden *w, const struct secrets_report *report, void *arg)
{
  struct origin *o = arg;
  cleanup_buf struct buf out = BUF_INIT(8192);
  wire_begin(&out, WIRE_REPLY, o->id, 0);
  wire_put_u64(&out, W_COUNT, report->good);
  wire_put_u64(&out, W_LAST, report->bad);
  wire_putz(&out, W_KEY_ID, report->key);
  wire_put_u64(&out, W_KEYS, report->keys);
  wire_putz(&out, W_NAME, report->source);
  wire_putz(&out, W_MESSAGE, report->why);
  reply_packet(w, *o, &out);
  free(o);
}

void handle_secret_check(struct request *q)
{
  struct origin *o = xcalloc(1, sizeof(*o));
  *o = request_origin(q);
  secrets_check(q->warden, checked, o);
}

/* ---- identity tokens ---- */

void handle_identity_keys(struct request *q)
{
  cleanup_buf struct buf keys = BUF_INIT(WIRE_MAX / 2);
  identity_published(q->warden, &keys);
  reply_begin(q, WIRE_REPLY, 0);
  wire_put(q->out, W_BODY, buf_str(&keys));
  wire_putz(q->out, W_URL, warden_config(q->warden)->identity_issuer);
  reply_send(q);
}

void handle_identity_rotate(struct request *q)
{
  struct err err = ERR_NONE;
  if (identity_rotate(q->warden, &err))
    reply_err(q, &err);
  else
    reply_ok(q);
}

void handle_identity_token(struct request *q)
{
  struct err err = ERR_NONE;
  cleanup_wipe struct buf token = BUF_INIT(IDENTITY_TOKEN_MAX);
  unsigned reuse;
  const struct box *b = request_box(q);
  if (!b)
    return;
  if (identity_token(q->warden, &b->row, wire_get(q->packet, W_NAME), &token, &reuse, &err)) {
    reply_err(q, &err);
    return;
  }
  reply_begin(q, WIRE_REPLY, 0);
  wire_put(q->out, W_TOKEN, buf_str(&token));
  reply_send(q);
}
