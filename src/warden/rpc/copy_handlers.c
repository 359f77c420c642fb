/* SPDX-License-Identifier: Apache-2.0 */
/* copy_handlers.c - requests about snapshots and forks. */
#include "warden/rpc/handlers.h"

#include "warden/box/box.h"
#include "warden/core/context.h"
#include "warden/core/box_reply.h"
#include "warden/db/ref.h"
#include "warden/box/fork.h"

/* A gate draws ids so that a request can be repeated; none of them may be another team's. The build of a fork is one of
 * the template that the source was made from, whoever's that is: it belongs to the source. */
static bool build_id_free(struct request *q, const struct box *source)
{
  struct str id = wire_get(q->packet, W_BUILD);
  const struct build *have = catalog_build(warden_catalog(q->warden), id);
  bool own = !have || !q->team.n || str_is(q->team, have->of->row.team) ||
             (have->row.kind == BUILD_FORK && !strcmp(have->row.source, source->row.id));
  if (uuid_valid(id) && own)
    return true;
  reply_error(q, -EINVAL, "invalid build ID");
  return false;
}

static bool box_ids_free(struct request *q, const struct box *source)
{
  for (struct str rest = wire_get(q->packet, W_REF), id; rest.n;) {
    str_cut(rest, ',', &id, &rest);
    const struct box *have = box_find(q->warden, id, STR_NONE);
    if (id_valid(id) && (!have || !strcmp(have->row.team, source->row.team)))
      continue;
    reply_error(q, -EINVAL, "invalid sandbox ID");
    return false;
  }
  return true;
}

void handle_snapshot(struct request *q)
{
  struct box *b = request_box(q);
  if (b && build_id_free(q, b))
    box_snapshot(b, &(struct snapshot_params){.origin = request_origin(q),
                                              .name = wire_get(q->packet, W_REF),
                                              .build = wire_get(q->packet, W_BUILD),
                                              .files_only = wire_u64(q->packet, W_COLD, 0) != 0});
}

static void put_tags(struct request *q, struct template *t)
{
  struct str name;
  void *value;
  for (size_t i = 0; map_next(&t->tags, &i, &name, &value);) {
    const struct tag *tag = value;
    if (tag->build->row.kind != BUILD_SNAPSHOT)
      continue;
    reply_begin(q, WIRE_ITEM, 0);
    put_snapshot(q->out, q->warden, t, name);
    wire_putz(q->out, W_BUILD, tag->build->row.id);
    wire_putz(q->out, W_ID, tag->build->row.source);
    wire_put_u64(q->out, W_COLD, !tag->build->row.checkpoint[0]);
    wire_put_u64(q->out, W_CREATED, (uint64_t)tag->build->row.created_us);
    reply_send(q);
  }
}

void handle_snapshot_list(struct request *q)
{
  struct template *const *list;
  size_t n = catalog_templates(warden_catalog(q->warden), &list);
  for (size_t i = 0; i < n; i++)
    if (str_is(q->team, list[i]->row.team))
      put_tags(q, list[i]);
  reply_ok(q);
}

/* ---- forks ---- */

void handle_box_fork(struct request *q)
{
  struct box *b = request_box(q);
  if (b && build_id_free(q, b) && box_ids_free(q, b))
    box_fork(b, &(struct fork_params){.origin = request_origin(q),
                                      .build = wire_get(q->packet, W_BUILD),
                                      .ids = wire_get(q->packet, W_REF),
                                      .timeout_s = (uint32_t)wire_u64(q->packet, W_TIMEOUT, 15)});
}
