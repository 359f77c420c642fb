/* SPDX-License-Identifier: Apache-2.0 */
/* build_handlers.c - requests about builds of templates and the files they copy. */
#include "warden/rpc/handlers.h"

#include "warden/core/context.h"
#include "warden/build/build_diff.h"
#include "warden/build/builder.h"
#include "warden/rpc/authority.h"
#include "warden/core/storage_quota.h"

void handle_build_request(struct request *q)
{
  struct err err = ERR_NONE;
  struct job *j;
  struct template *t;
  struct build_request r = {.team = q->team,
                            .ref = wire_get(q->packet, W_REF),
                            .tags = wire_get(q->packet, W_TAG),
                            .build = wire_get(q->packet, W_BUILD),
                            .template_id = wire_get(q->packet, W_TEMPLATE),
                            .cpus = (unsigned)MIN(wire_u64(q->packet, W_CPUS, 2), (uint64_t)UINT32_MAX),
                            .memory_mb = (unsigned)MIN(wire_u64(q->packet, W_MEMORY_MB, 1024), (uint64_t)UINT32_MAX),
                            .free_disk_mb = (unsigned)MIN(wire_u64(q->packet, W_DISK_MB, 0), (uint64_t)INT32_MAX),
                            .isolation = (unsigned)MIN(wire_u64(q->packet, W_ISOLATION, 0), (uint64_t)UINT32_MAX),
                            .recipe = wire_get(q->packet, W_RECIPE),
                            .rebuild = wire_u64(q->packet, W_MODE, 0) == 1,
                            .alias = wire_get(q->packet, W_ALIAS)};
  if (builder_request(q->warden, &r, &j, &t, &err)) {
    reply_err(q, &err);
    return;
  }
  const struct row_team *team = catalog_team(warden_catalog(q->warden), q->team);
  reply_begin(q, WIRE_REPLY, 0);
  wire_putz(q->out, W_TEMPLATE, t->row.id);
  wire_putz(q->out, W_BUILD, j->row.id);
  wire_putz(q->out, W_ALIAS, t->row.name);
  wire_putz(q->out, W_SLUG, team ? team->slug : "");
  wire_put_u64(q->out, W_PUBLIC, t->row.public);
  wire_putz(q->out, W_TAG, j->row.tags);
  reply_send(q);
}

void handle_build_start(struct request *q)
{
  struct err err = ERR_NONE;
  if (builder_start(q->warden, q->team, wire_get(q->packet, W_REF), wire_get(q->packet, W_BUILD),
                    wire_get(q->packet, W_RECIPE), &err))
    reply_err(q, &err);
  else
    reply_ok(q);
}

/* A build that was never asked for (it came with the server) has no job and no log, and is ready. */
static bool ready_made(struct request *q)
{
  struct build *b = catalog_build(warden_catalog(q->warden), wire_get(q->packet, W_BUILD));
  if (!b || !str_is(q->team, b->of->row.team) || builder_job(q->warden, wire_get(q->packet, W_BUILD)))
    return false;
  reply_begin(q, WIRE_REPLY, 0);
  wire_putz(q->out, W_TEMPLATE, b->of->row.id);
  wire_put_u64(q->out, W_STATE, JOB_READY);
  reply_send(q);
  return true;
}

void handle_build_get(struct request *q)
{
  struct err err = ERR_NONE;
  struct job *j;
  if (ready_made(q))
    return;
  if (builder_find(q->warden, q->team, wire_get(q->packet, W_REF), wire_get(q->packet, W_BUILD), &j, &err)) {
    reply_err(q, &err);
    return;
  }
  reply_begin(q, WIRE_REPLY, 0);
  wire_putz(q->out, W_TEMPLATE, j->row.template_id);
  wire_put_u64(q->out, W_STATE, j->row.state);
  wire_putz(q->out, W_STEP, j->row.step);
  wire_putz(q->out, W_MESSAGE, j->row.reason ? j->row.reason : "");
  wire_putz(q->out, W_ID, j->kept_box);
  cleanup_fd int fd = j->row.state == JOB_WAITING ? -1 : builder_log(q->warden, j, &err);
  reply_send_fd(q, fd);
}

void handle_build_cancel(struct request *q)
{
  size_t n = builder_cancel(q->warden, q->team, wire_get(q->packet, W_BUILD), "cancelled: by request");
  reply_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, n);
  reply_send(q);
}

/* Both are builds of templates of the team that asks: what is in others' is theirs. */
void handle_build_diff(struct request *q)
{
  struct err err = ERR_NONE;
  struct template *t = request_template(q, NULL);
  if (!t)
    return;
  struct str names[2] = {wire_get(q->packet, W_ID), wire_get(q->packet, W_BUILD)};
  struct build *b[2];
  for (size_t i = 0; i < 2; i++) {
    b[i] = catalog_build(warden_catalog(q->warden), names[i]);
    if (!b[i] || !str_is(q->team, b[i]->of->row.team) || (i == 1 && b[i]->of != t)) {
      err_set(&err, -ENOENT, "build '" STR_FMT "' not found among those of this team's template that are ready",
              STR_ARG(str_sub(names[i], 0, 100)));
      reply_err(q, &err);
      return;
    }
  }
  if (build_diff(q->warden, request_origin(q), b[0], b[1], &err))
    reply_err(q, &err);
}

void handle_file_look(struct request *q)
{
  struct template *t = request_template(q, NULL);
  if (!t)
    return;
  if (!str_is(q->team, t->row.team)) {
    reply_error(q, -EPERM, "the template belongs to another team");
    return;
  }
  uint64_t expires = (uint64_t)clock_wall_us() / 1000000 + UPLOAD_LINK_S;
  char signature[2 * SHA256_LEN + 1];
  upload_sign(q->warden, q->team, str_sub(wire_get(q->packet, W_NAME), 0, 64), expires, signature);
  reply_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, builder_file(q->warden, q->team, wire_get(q->packet, W_NAME)));
  wire_put_u64(q->out, W_TO, expires);
  wire_putz(q->out, W_SIGNATURE, signature);
  reply_send(q);
}

void handle_file_open(struct request *q)
{
  struct err err = ERR_NONE;
  uint64_t granted = 0;
  struct str id = wire_get(q->packet, W_ID);
  cleanup_fd int fd = builder_file_open(q->warden, q->team, wire_get(q->packet, W_NAME), id, &err);
  if (fd >= 0 && storage_grant(q->warden, q->team, id, wire_u64(q->packet, W_COUNT, 0), wire_u64(q->packet, W_MOST, 0),
                               &granted, &err)) {
    builder_file_close(q->warden, q->team, wire_get(q->packet, W_NAME), id, -1, NULL);
    close(steal_fd(&fd));
  }
  if (fd < 0) {
    reply_err(q, &err);
    return;
  }
  reply_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, granted);
  reply_send_fd(q, fd);
}

void handle_file_close(struct request *q)
{
  struct err err = ERR_NONE;
  bool keep = wire_get(q->packet, W_COUNT).p != NULL;
  int64_t size = keep ? (int64_t)wire_u64(q->packet, W_COUNT, 0) : -1;
  int64_t replaced = keep ? builder_file_size(q->warden, q->team, wire_get(q->packet, W_NAME)) : -1;
  int r = builder_file_close(q->warden, q->team, wire_get(q->packet, W_NAME), wire_get(q->packet, W_ID), size, &err);
  storage_release(q->warden, q->team, wire_get(q->packet, W_ID), r ? -1 : size, r ? -1 : replaced);
  if (r)
    reply_err(q, &err);
  else
    reply_ok(q);
}
