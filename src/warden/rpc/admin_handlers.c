/* desk_keeping.c - what the machine's own root asks beyond what gates do: layers of templates, garbage, the key to a box. */
#include "warden/rpc/request.h"

#include "warden/build/gc.h"
#include "wire/api_key.h"

#define CONFIG_MAX ((size_t)100 << 10) /* of a build, in one answer */

static void ask_show(struct question *q)
{
  struct err err = ERR_NONE;
  struct template *t;
  struct build *b;
  if (catalog_find(q->warden->catalog, q->team, wire_get(q->packet, W_REF), &t, &b, &err)) {
    desk_refuse_err(q, &err);
    return;
  }
  desk_begin(q, WIRE_REPLY, 0);
  desk_put_build(q, t, b);
  wire_putz(q->out, W_LAYERS, b->row.layers);
  if (strlen(b->row.config) <= CONFIG_MAX)
    wire_putz(q->out, W_CONFIG, b->row.config);
  desk_finish(q);
}

static void tell_garbage(const char *path, void *arg)
{
  struct question *q = arg;
  desk_begin(q, WIRE_ITEM, 0);
  wire_putz(q->out, W_NAME, path);
  desk_finish(q);
}

static void ask_garbage(struct question *q)
{
  struct garbage_order o = {.only_say = wire_u64(q->packet, W_MODE, 1) != 0,
                            .unused_s =
                                (int64_t)MIN(wire_u64(q->packet, W_TIMEOUT, (uint64_t)q->warden->config->cache_days * 86400), (uint64_t)INT32_MAX),
                            .tell = tell_garbage,
                            .arg = q};
  size_t n = garbage_collect(q->warden, &o);
  desk_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, n);
  desk_finish(q);
}

static void ask_token(struct question *q)
{
  char token[TOKEN_TEXT];
  token_make(str_of(q->warden->secret), TOKEN_ACCESS, wire_get(q->packet, W_ID), token);
  desk_begin(q, WIRE_REPLY, 0);
  wire_putz(q->out, W_SECRET, token);
  desk_finish(q);
}

static const struct {
  enum wire_type type;
  void (*answer)(struct question *q);
} questions[] = {
    {WIRE_BUILD_SHOW, ask_show},
    {WIRE_GARBAGE, ask_garbage},
    {WIRE_BOX_TOKEN, ask_token},
    {WIRE_TEMPLATE_IMPORT, desk_import},
};

bool desk_keeping(struct question *q, enum wire_type type)
{
  for (size_t i = 0; i < ARRAY_LEN(questions); i++)
    if (questions[i].type == type) {
      questions[i].answer(q);
      return true;
    }
  return false;
}
