/* SPDX-License-Identifier: Apache-2.0 */
/* box_reply.c - see box_reply.h. */
#include "warden/core/box_reply.h"

#include "wire/api_key.h"
#include "warden/core/box_egress.h"
#include "warden/core/volume_mounts.h"
#include "warden/core/warden_state.h"

/* ---- fields ---- */

void box_put_fields(struct buf *p, const struct box *b)
{
  const struct row_box *r = &b->row;
  wire_putz(p, W_ID, r->id);
  wire_putz(p, W_TEAM, r->team);
  wire_putz(p, W_TEMPLATE, r->template_id);
  wire_putz(p, W_ALIAS, r->alias);
  wire_putz(p, W_BUILD, r->build);
  wire_put_u64(p, W_STARTED, (uint64_t)r->started_us);
  wire_put_u64(p, W_END, (uint64_t)r->end_us);
  wire_put_u64(p, W_STATE, r->state);
  wire_put_u64(p, W_CPUS, r->cpus);
  wire_put_u64(p, W_MEMORY_MB, r->memory_mb);
  wire_put_u64(p, W_DISK_MB, r->disk_mb);
  wire_put_u64(p, W_FLAGS, r->flags);
  wire_put_u64(p, W_RUN, r->run);
  wire_put_u64(p, W_TIER, r->tier);
  wire_putz(p, W_CONFIG, r->config);
  if (b->egress && b->egress->told.n)
    wire_put(p, W_RULES, buf_str(&b->egress->told));
  volume_mounts_put(p, r->mounts);
}

static void put_route(struct buf *p, const struct box *b)
{
  const struct row_box *r = &b->row;
  wire_putz(p, W_ID, r->id);
  wire_putz(p, W_TEAM, r->team); /* gates count what each team has open */
  wire_put_u64(p, W_STATE, r->state);
  wire_put_u64(p, W_FLAGS, r->flags);
  wire_put_u64(p, W_RUN, r->run);
  wire_put_u64(p, W_TIER, r->tier);
  wire_putz(p, W_CONFIG, r->config);
}

static size_t client_at(const struct box *b, const uint8_t client[16])
{
  size_t i = 0;
  while (i < BOX_CLIENTS && memcmp(b->clients[i], client, sizeof(b->clients[i])) != 0)
    i++;
  return i;
}

bool box_vouched(const struct box *b, const uint8_t client[16])
{
  static const uint8_t nobody[16];
  return memcmp(client, nobody, sizeof(nobody)) != 0 && client_at(b, client) < BOX_CLIENTS;
}

void box_vouch(struct box *b, const uint8_t client[16])
{
  size_t i = MIN(client_at(b, client), (size_t)BOX_CLIENTS - 1);
  uint8_t copy[16];
  memcpy(copy, client, sizeof(copy));
  memmove(b->clients[1], b->clients[0], i * sizeof(b->clients[0]));
  memcpy(b->clients[0], copy, sizeof(copy));
}

static void put_token(struct buf *out, enum wire_tag plain, enum wire_tag hashed, enum token_kind kind, bool show,
                      const struct box *b)
{
  char token[TOKEN_TEXT];
  uint8_t hash[SHA256_LEN];
  token_make(str_of(b->warden->secret), kind, str_of(b->row.id), token);
  sha256_of(token, strlen(token), hash);
  wire_put(out, hashed, str_make(hash, sizeof(hash)));
  if (show)
    wire_putz(out, plain, token);
}

void box_put_visible(struct buf *out, enum authority proven, const struct box *b)
{
  bool own = proven == BY_KEY;
  if (proven == BY_ANYONE)
    put_route(out, b);
  else
    box_put_fields(out, b);
  if (b->row.flags & BOX_SECURE)
    put_token(out, W_TOKEN, W_TOKEN_HASH, TOKEN_ACCESS, own, b);
  if (b->row.flags & BOX_PRIVATE)
    put_token(out, W_TRAFFIC, W_TRAFFIC_HASH, TOKEN_TRAFFIC, own, b);
}

void reply_traced(struct warden *w, struct origin origin, int status, struct box *b, const struct err *err,
                  const struct wire_trace *trace)
{
  if (!reply_possible(w, origin))
    return;
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_REPLY, origin.id, status);
  if (status)
    wire_putz(&out, W_MESSAGE, err->msg);
  else
    box_put_visible(&out, origin.proven, b);
  if (!status && origin.proven == BY_KEY)
    box_vouch(b, origin.client);
  if (trace && !status)
    wire_put(&out, W_TRACE, str_make(trace, sizeof(*trace)));
  if (origin.resumed)
    wire_put_u64(&out, W_RESUMED, 1);
  reply_send_on(origin.ipc, &out, -1);
}

void reply_box(struct warden *w, struct origin origin, int status, struct box *b, const struct err *err)
{
  reply_traced(w, origin, status, b, err, NULL);
}

void reply_created(struct warden *w, struct origin origin, int status, struct box *b, const struct err *err)
{
  reply_traced(w, origin, status, b, err, &b->trace);
}

void reply_item(struct warden *w, struct origin origin, int status, struct box *b, bool files, const struct err *err)
{
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_ITEM, origin.id, status);
  if (status)
    wire_putz(&out, W_MESSAGE, err->msg);
  else
    box_put_visible(&out, origin.proven, b);
  if (!status && origin.proven == BY_KEY)
    box_vouch(b, origin.client);
  wire_put_u64(&out, W_COLD, files);
  reply_packet(w, origin, &out);
}

/* ---- snapshots ---- */

void put_snapshot(struct buf *p, struct warden *w, const struct template *t, struct str tag)
{
  const struct row_team *owner = catalog_team(w->catalog, str_of(t->row.team));
  wire_putz(p, W_TEMPLATE, t->row.id);
  wire_putz(p, W_SLUG, owner ? owner->slug : "");
  wire_putz(p, W_ALIAS, template_name(t));
  wire_put(p, W_TAG, tag);
}

void reply_snapshot(struct warden *w, struct origin origin, const struct template *t, const char *tag, bool files)
{
  cleanup_buf struct buf out = BUF_INIT(4096);
  wire_begin(&out, WIRE_REPLY, origin.id, 0);
  put_snapshot(&out, w, t, str_of(tag));
  wire_put_u64(&out, W_COLD, files);
  reply_packet(w, origin, &out);
}
