/* SPDX-License-Identifier: Apache-2.0 */
/* admin_handlers.c - what the host's root user asks beyond what gates do: layers of templates, garbage, the key to a
 * box. */
#include "warden/rpc/handlers.h"

#include "warden/build/gc.h"
#include "warden/build/import.h"
#include "warden/core/context.h"
#include "warden/core/doctor_run.h"
#include "warden/core/own_report.h"
#include "wire/api_key.h"

#include <limits.h>
#include <stdlib.h>

#define CONFIG_MAX ((size_t)100 << 10) /* of a build, in one answer */
#define DOCTOR_MAX ((size_t)256 << 10)

void handle_build_show(struct request *q)
{
  struct err err = ERR_NONE;
  struct template *t;
  struct build *b;
  if (catalog_find(warden_catalog(q->warden), q->team, wire_get(q->packet, W_REF), &t, &b, &err)) {
    reply_err(q, &err);
    return;
  }
  reply_begin(q, WIRE_REPLY, 0);
  put_template(q->out, t, b, q->warden);
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

void handle_gc(struct request *q)
{
  struct gc_params o = {
      .only_say = wire_u64(q->packet, W_MODE, 1) != 0,
      .unused_s = (int64_t)MIN(wire_u64(q->packet, W_TIMEOUT, (uint64_t)warden_config(q->warden)->cache_days * 86400),
                               (uint64_t)INT32_MAX),
      .report = put_gc_item,
      .arg = q};
  size_t n = gc_run(q->warden, &o);
  reply_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, n);
  reply_send(q);
}

void handle_box_token(struct request *q)
{
  char token[TOKEN_TEXT];
  token_make(str_of(warden_secret(q->warden)), TOKEN_ACCESS, wire_get(q->packet, W_ID), token);
  reply_begin(q, WIRE_REPLY, 0);
  wire_putz(q->out, W_SECRET, token);
  reply_send(q);
}

static int examine(const struct warden_config *config, struct str input, struct buf *answer, struct err *err)
{
  return doctor_run(config, answer, err);
}

void handle_doctor(struct request *q)
{
  struct err err = ERR_NONE;
  struct own_report r = {.team = "", .answer_max = DOCTOR_MAX, .origin = request_origin(q), .make = examine};
  if (own_report_run(q->warden, &r, &err))
    reply_err(q, &err);
}

struct import_reply {
  struct warden *warden;
  struct origin origin;
};

static void import_finished(void *arg, int result, struct template *t, struct build *b, const struct err *err)
{
  struct import_reply *r = arg;
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_REPLY, r->origin.id, result);
  if (result)
    wire_putz(&out, W_MESSAGE, err->msg);
  else
    put_template(&out, t, b, r->warden);
  reply_packet(r->warden, r->origin, &out);
  free(r);
}

void handle_template_import(struct request *q)
{
  struct err err = ERR_NONE;
  struct import_reply *r = xcalloc(1, sizeof(*r));
  *r = (struct import_reply){.warden = q->warden, .origin = request_origin(q)};
  struct import_params p = {.team = q->team,
                            .ref = wire_get(q->packet, W_REF),
                            .image = wire_get(q->packet, W_NAME),
                            .done = import_finished,
                            .arg = r};
  if (template_import(q->warden, &p, &err)) {
    reply_err(q, &err);
    free(r);
  }
}

/* Takes in what is new in the store. Other templates that can't be taken in are in the log; the one that was asked for
 * fails the request. No team: the shared one of that name. */
static int take_in(struct request *q, struct str name, struct err *err)
{
  struct template *t;
  struct build *b;
  struct err why = ERR_NONE;
  int r = catalog_import(warden_catalog(q->warden), warden_config(q->warden)->templates, &why);
  if (catalog_find(warden_catalog(q->warden), STR_NONE, name, &t, &b, err))
    return r ? (*err = why, r) : err->code;
  wire_putz(q->out, W_BUILD, b->row.id);
  return 0;
}

void handle_template_store(struct request *q)
{
  struct err err = ERR_NONE;
  char path[PATH_MAX];
  struct str name = wire_get(q->packet, W_REF);
  if (!realpath(warden_config(q->warden)->templates, path)) {
    err_errno(&err, "the store of templates %s", warden_config(q->warden)->templates);
    reply_err(q, &err);
    return;
  }
  reply_begin(q, WIRE_REPLY, 0);
  if (name.n && take_in(q, name, &err)) {
    reply_err(q, &err);
    return;
  }
  wire_putz(q->out, W_NAME, path);
  reply_send(q);
}
