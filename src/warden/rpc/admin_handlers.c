/* SPDX-License-Identifier: Apache-2.0 */
/* admin_handlers.c - what the host's root user asks beyond what gates do: layers of templates, garbage, the key to a
 * box. */
#include "warden/rpc/request.h"

#include "warden/build/gc.h"
#include "wire/api_key.h"

#define CONFIG_MAX ((size_t)100 << 10) /* of a build, in one answer */

static void handle_show(struct request *q)
{
  struct err err = ERR_NONE;
  struct template *t;
  struct build *b;
  if (catalog_find(q->warden->catalog, q->team, wire_get(q->packet, W_REF), &t, &b, &err)) {
    reply_err(q, &err);
    return;
  }
  reply_begin(q, WIRE_REPLY, 0);
  reply_put_build(q, t, b);
  wire_putz(q->out, W_LAYERS, b->row.layers);
  if (strlen(b->row.config) <= CONFIG_MAX)
    wire_putz(q->out, W_CONFIG, b->row.config);
  reply_send(q);
}

static void put_gc_item(const char *path, void *arg)
{
  struct request *q = arg;
  reply_begin(q, WIRE_ITEM, 0);
  wire_putz(q->out, W_NAME, path);
  reply_send(q);
}

static void handle_gc(struct request *q)
{
  struct gc_params o = {
      .only_say = wire_u64(q->packet, W_MODE, 1) != 0,
      .unused_s = (int64_t)MIN(wire_u64(q->packet, W_TIMEOUT, (uint64_t)q->warden->config->cache_days * 86400),
                               (uint64_t)INT32_MAX),
      .tell = put_gc_item,
      .arg = q};
  size_t n = gc_run(q->warden, &o);
  reply_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, n);
  reply_send(q);
}

static void handle_token(struct request *q)
{
  char token[TOKEN_TEXT];
  token_make(str_of(q->warden->secret), TOKEN_ACCESS, wire_get(q->packet, W_ID), token);
  reply_begin(q, WIRE_REPLY, 0);
  wire_putz(q->out, W_SECRET, token);
  reply_send(q);
}

static const struct {
  enum wire_type type;
  void (*answer)(struct request *q);
} questions[] = {
    {WIRE_BUILD_SHOW, handle_show},
    {WIRE_GC, handle_gc},
    {WIRE_BOX_TOKEN, handle_token},
    {WIRE_TEMPLATE_IMPORT, handle_import},
};

bool handle_admin(struct request *q, enum wire_type type)
{
  for (size_t i = 0; i < ARRAY_LEN(questions); i++)
    if (questions[i].type == type) {
      questions[i].answer(q);
      return true;
    }
  return false;
}
