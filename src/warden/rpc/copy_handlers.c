/* SPDX-License-Identifier: Apache-2.0 */
/* copy_handlers.c - questions about snapshots and forks. */
#include "warden/rpc/request.h"
#include "warden/fork.h"

static void put_error(struct buf *out, const struct err *err)
{
  if (err)
    wire_putz(out, W_MESSAGE, err->msg);
}

void reply_item(struct warden *w, struct origin origin, int status, struct box *b, bool files, const struct err *err)
{
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_ITEM, origin.id, status);
  if (status)
    put_error(&out, err);
  else
    desk_put_box(&out, (enum authority)origin.proven, b);
  if (!status && origin.proven == BY_KEY)
    box_vouch(b, origin.client);
  wire_put_u64(&out, W_COLD, files);
  reply_packet(w, origin, &out);
}

void reply_end(struct warden *w, struct origin origin, int status, const struct err *err)
{
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_REPLY, origin.id, status);
  if (status)
    put_error(&out, err);
  reply_packet(w, origin, &out);
}

/* ---- snapshots ---- */

static void put_snapshot(struct buf *p, struct warden *w, const struct template *t, struct str tag)
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

/* A gate draws ids so that a question can be repeated; none of them may be another team's. */
static bool build_id_good(struct request *q)
{
  struct str id = wire_get(q->packet, W_BUILD);
  const struct build *have = catalog_build(q->warden->catalog, id);
  if (uuid_valid(id) && (!have || !q->team.n || str_is(q->team, have->of->row.team)))
    return true;
  reply_error(q, -EINVAL, "bad build id");
  return false;
}

static bool box_ids_good(struct request *q, const struct box *source)
{
  for (struct str rest = wire_get(q->packet, W_REF), id; rest.n;) {
    str_cut(rest, ',', &id, &rest);
    const struct box *have = box_find(q->warden, id, STR_NONE);
    if (id_good(id) && (!have || !strcmp(have->row.team, source->row.team)))
      continue;
    reply_error(q, -EINVAL, "invalid sandbox ID");
    return false;
  }
  return true;
}

static void handle_snapshot(struct request *q)
{
  struct box *b = request_box(q);
  if (b && build_id_good(q))
    box_snapshot(b, &(struct snapshot_params){.origin = request_origin(q),
                                              .name = wire_get(q->packet, W_REF),
                                              .build = wire_get(q->packet, W_BUILD)});
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

static void handle_snapshots(struct request *q)
{
  struct template *const *list;
  size_t n = catalog_templates(q->warden->catalog, &list);
  for (size_t i = 0; i < n; i++)
    if (str_is(q->team, list[i]->row.team))
      put_tags(q, list[i]);
  reply_ok(q);
}

/* ---- forks ---- */

static void handle_fork(struct request *q)
{
  struct box *b = request_box(q);
  if (b && build_id_good(q) && box_ids_good(q, b))
    box_fork(b, &(struct fork_params){.origin = request_origin(q),
                                      .build = wire_get(q->packet, W_BUILD),
                                      .ids = wire_get(q->packet, W_REF),
                                      .timeout_s = (uint32_t)wire_u64(q->packet, W_TIMEOUT, 15)});
}

static const struct {
  enum wire_type type;
  void (*answer)(struct request *q);
} questions[] = {
    {WIRE_SNAPSHOT, handle_snapshot}, {WIRE_SNAPSHOT_LIST, handle_snapshots}, {WIRE_BOX_FORK, handle_fork}};

bool handle_copy(struct request *q, enum wire_type type)
{
  for (size_t i = 0; i < ARRAY_LEN(questions); i++)
    if (questions[i].type == type) {
      questions[i].answer(q);
      return true;
    }
  return false;
}
