/* desk_copy.c - questions about snapshots and forks. */
#include "warden/rpc/request.h"
#include "warden/fork.h"

static void put_error(struct buf *out, const struct err *err)
{
  if (err)
    wire_putz(out, W_MESSAGE, err->msg);
}

void desk_answer_item(struct warden *w, struct ask ask, int status, const struct box *b, bool files, const struct err *err)
{
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_ITEM, ask.id, status);
  if (status)
    put_error(&out, err);
  else
    box_record(&out, b);
  wire_put_u64(&out, W_COLD, files);
  desk_send(w, ask, &out);
}

void desk_answer_end(struct warden *w, struct ask ask, int status, const struct err *err)
{
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_REPLY, ask.id, status);
  if (status)
    put_error(&out, err);
  desk_send(w, ask, &out);
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

void desk_answer_snapshot(struct warden *w, struct ask ask, const struct template *t, const char *tag, bool files)
{
  cleanup_buf struct buf out = BUF_INIT(4096);
  wire_begin(&out, WIRE_REPLY, ask.id, 0);
  put_snapshot(&out, w, t, str_of(tag));
  wire_put_u64(&out, W_COLD, files);
  desk_send(w, ask, &out);
}

static void ask_snapshot(struct question *q)
{
  struct box *b = desk_box(q);
  if (b)
    box_snapshot(b, &(struct snapshot_order){.ask = desk_ask(q), .name = wire_get(q->packet, W_REF), .build = wire_get(q->packet, W_BUILD)});
}

static void put_tags(struct question *q, struct template *t)
{
  struct str name;
  void *value;
  for (size_t i = 0; map_next(&t->tags, &i, &name, &value);) {
    const struct tag *tag = value;
    if (tag->build->row.kind != BUILD_SNAPSHOT)
      continue;
    desk_begin(q, WIRE_ITEM, 0);
    put_snapshot(q->out, q->warden, t, name);
    wire_putz(q->out, W_BUILD, tag->build->row.id);
    wire_putz(q->out, W_ID, tag->build->row.source);
    wire_put_u64(q->out, W_COLD, !tag->build->row.image[0]);
    wire_put_u64(q->out, W_CREATED, (uint64_t)tag->build->row.created_us);
    desk_finish(q);
  }
}

static void ask_snapshots(struct question *q)
{
  struct template *const *list;
  size_t n = catalog_templates(q->warden->catalog, &list);
  for (size_t i = 0; i < n; i++)
    if (str_is(q->team, list[i]->row.team))
      put_tags(q, list[i]);
  desk_agree(q);
}

/* ---- forks ---- */

static void ask_fork(struct question *q)
{
  struct box *b = desk_box(q);
  if (b)
    box_fork(b, &(struct fork_order){.ask = desk_ask(q),
                                     .build = wire_get(q->packet, W_BUILD),
                                     .ids = wire_get(q->packet, W_REF),
                                     .timeout_s = (uint32_t)wire_u64(q->packet, W_TIMEOUT, 15)});
}

static const struct {
  enum wire_type type;
  void (*answer)(struct question *q);
} questions[] = {{WIRE_SNAPSHOT, ask_snapshot}, {WIRE_SNAPSHOT_LIST, ask_snapshots}, {WIRE_BOX_FORK, ask_fork}};

bool desk_copy(struct question *q, enum wire_type type)
{
  for (size_t i = 0; i < ARRAY_LEN(questions); i++)
    if (questions[i].type == type) {
      questions[i].answer(q);
      return true;
    }
  return false;
}
