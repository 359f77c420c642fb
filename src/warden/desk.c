/* desk.c - questions of the gates, one function each. Reads only the fixed shapes of wire.h; text that clients wrote
 * passes through untouched. */
#include "warden/desk.h"

#include <stdio.h>

struct question {
  struct warden *warden;
  struct link *link;
  struct str packet;
  uint64_t id;
  struct str team;
  struct buf *out; /* the answer being built */
};

static void begin(struct question *q, enum wire_type type, int status)
{
  wire_begin(q->out, type, q->id, status);
}

static void send_to(struct link *l, const struct buf *b, int fd)
{
  int r = buf_failed(b) ? buf_failed(b) : link_send(l, buf_str(b), fd);
  if (r && r != -EPIPE)
    log_error("answer of %zu bytes not sent: %s", b->n, strerrordesc_np(-r));
}

static void finish(struct question *q)
{
  send_to(q->link, q->out, -1);
}

static void refuse(struct question *q, int status, const char *message)
{
  begin(q, WIRE_REPLY, status);
  wire_putz(q->out, W_MESSAGE, message);
  finish(q);
}

static void refuse_err(struct question *q, const struct err *err)
{
  refuse(q, err->code ? err->code : -EIO, err->msg);
}

static void agree(struct question *q)
{
  begin(q, WIRE_REPLY, 0);
  finish(q);
}

static bool link_alive(struct warden *w, const struct link *l)
{
  for (size_t i = 0; i < w->links.n; i++)
    if (w->links.p[i] == l)
      return true;
  return false;
}

void desk_answer_box(struct warden *w, struct ask ask, int status, const struct box *b, const struct err *err)
{
  if (!link_alive(w, ask.link))
    return;
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_REPLY, ask.id, status);
  if (status)
    wire_putz(&out, W_MESSAGE, err->msg);
  else
    box_record(&out, b);
  send_to(ask.link, &out, -1);
}

/* ---- accounts ---- */

static void put_team(struct buf *b, const struct row_team *t)
{
  wire_putz(b, W_TEAM, t->id);
  wire_putz(b, W_NAME, t->name);
  wire_putz(b, W_SLUG, t->slug);
}

static void ask_auth(struct question *q)
{
  const struct row_team *t = catalog_team_by_key(q->warden->catalog, wire_get(q->packet, W_KEYHASH));
  if (!t) {
    refuse(q, -EACCES, "unknown key");
    return;
  }
  begin(q, WIRE_REPLY, 0);
  put_team(q->out, t);
  finish(q);
}

static void ask_teams(struct question *q)
{
  const struct row_team *const *list;
  size_t n = catalog_teams(q->warden->catalog, &list);
  for (size_t i = 0; i < n; i++) {
    if (catalog_system_team(list[i]))
      continue;
    begin(q, WIRE_ITEM, 0);
    put_team(q->out, list[i]);
    finish(q);
  }
  agree(q);
}

static void put_key(struct buf *b, const struct row_key *k)
{
  wire_putz(b, W_ID, k->id);
  wire_putz(b, W_NAME, k->name);
  wire_putz(b, W_MASK, k->mask);
  wire_put_u64(b, W_CREATED, (uint64_t)k->created_us);
  wire_put_u64(b, W_LAST, (uint64_t)k->used_us);
}

static void ask_keys(struct question *q)
{
  const struct row_key *const *list;
  size_t n = catalog_keys(q->warden->catalog, &list);
  for (size_t i = 0; i < n; i++) {
    if (!str_is(q->team, list[i]->team))
      continue;
    begin(q, WIRE_ITEM, 0);
    put_key(q->out, list[i]);
    finish(q);
  }
  agree(q);
}

static void keys_changed(struct warden *w)
{
  cleanup_buf struct buf p = BUF_INIT(256);
  wire_begin(&p, WIRE_KEYS_CHANGED, 0, 0);
  warden_broadcast(w, buf_str(&p));
}

static void ask_key_create(struct question *q)
{
  struct err err = ERR_NONE;
  const struct row_key *k;
  if (catalog_key_add(q->warden->catalog, q->team, wire_get(q->packet, W_NAME), wire_get(q->packet, W_KEYHASH), wire_get(q->packet, W_MASK), &k, &err)) {
    refuse_err(q, &err);
    return;
  }
  begin(q, WIRE_REPLY, 0);
  put_key(q->out, k);
  finish(q);
}

static void ask_key_rename(struct question *q)
{
  struct err err = ERR_NONE;
  if (catalog_key_rename(q->warden->catalog, q->team, wire_get(q->packet, W_ID), wire_get(q->packet, W_NAME), &err))
    refuse_err(q, &err);
  else
    agree(q);
}

static void ask_key_delete(struct question *q)
{
  struct err err = ERR_NONE;
  if (catalog_key_delete(q->warden->catalog, q->team, wire_get(q->packet, W_ID), &err)) {
    refuse_err(q, &err);
    return;
  }
  keys_changed(q->warden);
  agree(q);
}

/* ---- templates ---- */

static void put_template(struct buf *p, struct template *t, struct build *b, struct catalog *c)
{
  const struct row_team *owner = catalog_team(c, str_of(t->row.team));
  wire_putz(p, W_TEMPLATE, t->row.id);
  wire_putz(p, W_ALIAS, t->row.name);
  wire_putz(p, W_TEAM, t->row.team);
  wire_putz(p, W_SLUG, owner ? owner->slug : "");
  wire_put_u64(p, W_PUBLIC, t->row.public);
  wire_put_u64(p, W_CREATED, (uint64_t)t->row.created_us);
  wire_put_u64(p, W_LAST, (uint64_t)t->row.updated_us);
  wire_put_u64(p, W_STARTED, (uint64_t)t->row.spawned_us);
  wire_put_u64(p, W_SPAWNS, t->row.spawns);
  if (!b)
    return;
  wire_putz(p, W_BUILD, b->row.id);
  wire_put_u64(p, W_CPUS, b->row.cpus);
  wire_put_u64(p, W_MEMORY_MB, b->row.memory_mb);
  wire_put_u64(p, W_DISK_MB, b->row.disk_mb);
}

static void ask_templates(struct question *q)
{
  struct catalog *c = q->warden->catalog;
  struct template *const *list;
  size_t n = catalog_templates(c, &list);
  for (size_t i = 0; i < n; i++) {
    if (!list[i]->row.public && !str_is(q->team, list[i]->row.team))
      continue;
    begin(q, WIRE_ITEM, 0);
    put_template(q->out, list[i], map_get(&list[i]->tags, STR("default")), c);
    finish(q);
  }
  agree(q);
}

static void ask_template(struct question *q)
{
  struct err err = ERR_NONE;
  struct template *t;
  struct build *b;
  if (catalog_find(q->warden->catalog, q->team, wire_get(q->packet, W_REF), &t, &b, &err)) {
    refuse_err(q, &err);
    return;
  }
  begin(q, WIRE_REPLY, 0);
  put_template(q->out, t, b, q->warden->catalog);
  finish(q);
}

/* ---- boxes ---- */

static void ask_create(struct question *q)
{
  struct err err = ERR_NONE;
  struct box_order order = {
      .id = wire_get(q->packet, W_ID),
      .team = q->team,
      .ref = wire_get(q->packet, W_REF),
      .config = wire_get(q->packet, W_CONFIG),
      .init = wire_get(q->packet, W_INIT),
      .timeout_s = (uint32_t)wire_u64(q->packet, W_TIMEOUT, 15),
      .flags = (unsigned)wire_u64(q->packet, W_FLAGS, 0),
  };
  if (q->warden->stopping)
    refuse(q, -ESHUTDOWN, "Failed to place sandbox: the server is stopping");
  else if (box_create(q->warden, &order, (struct ask){q->link, q->id}, &err))
    refuse_err(q, &err);
}

/* The box a question is about; answers the refusal itself. A box that ended is told with its cause. */
static struct box *asked_box(struct question *q)
{
  struct str id = wire_get(q->packet, W_ID);
  struct box *b = box_find(q->warden, id, q->team);
  if (b)
    return b;
  char cause[256] = "";
  int64_t when = 0;
  begin(q, WIRE_REPLY, -ENOENT);
  if (!store_cause(q->warden->store, id, q->team, cause, sizeof(cause), &when)) {
    wire_putz(q->out, W_CAUSE, cause);
    wire_put_u64(q->out, W_END, (uint64_t)when);
  }
  finish(q);
  return NULL;
}

static void answer_box(struct question *q, const struct box *b)
{
  begin(q, WIRE_REPLY, 0);
  box_record(q->out, b);
  finish(q);
}

static void ask_get(struct question *q)
{
  struct box *b = asked_box(q);
  if (b)
    answer_box(q, b);
}

static void ask_list(struct question *q)
{
  void *value;
  for (size_t i = 0; map_next(&q->warden->boxes, &i, NULL, &value);) {
    struct box *b = value;
    if ((q->team.n && !str_is(q->team, b->row.team)) || b->row.state == BOX_STARTING)
      continue;
    begin(q, WIRE_ITEM, 0);
    box_record(q->out, b);
    finish(q);
  }
  agree(q);
}

static void ask_kill(struct question *q)
{
  struct box *b = asked_box(q);
  if (!b)
    return;
  box_end(b, "killed: by request");
  agree(q);
}

static void ask_timeout(struct question *q)
{
  struct box *b = asked_box(q);
  if (!b)
    return;
  int64_t end = clock_wall_us() + (int64_t)wire_u64(q->packet, W_TIMEOUT, 0) * 1000000;
  if (wire_u64(q->packet, W_MODE, TIMEOUT_SET) == TIMEOUT_EXTEND)
    end = MAX(end, b->row.end_us);
  struct err err = ERR_NONE;
  if (b->row.state == BOX_STARTING)
    refuse(q, -EBUSY, "the sandbox is still starting");
  else if (box_set_end(b, end, &err))
    refuse_err(q, &err);
  else
    answer_box(q, b);
}

static void ask_door(struct question *q)
{
  struct box *b = asked_box(q);
  if (!b)
    return;
  struct err err = ERR_NONE;
  cleanup_fd int fd = box_door(b, (unsigned)wire_u64(q->packet, W_PORT, 0), &err);
  if (fd < 0) {
    begin(q, WIRE_REPLY, fd);
    wire_putz(q->out, W_MESSAGE, err.msg);
    wire_put_u64(q->out, W_RUN, b->row.run);
    finish(q);
    return;
  }
  begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_RUN, b->row.run);
  send_to(q->link, q->out, fd);
}

static void ask_usage(struct question *q)
{
  struct box *b = asked_box(q);
  if (!b)
    return;
  int64_t from = (int64_t)wire_u64(q->packet, W_FROM, 0), to = (int64_t)wire_u64(q->packet, W_TO, INT64_MAX);
  for (size_t i = 0; i < b->usage.n; i++) {
    const struct wire_sample *s = &b->usage.samples[i];
    if (s->wall_us < from || s->wall_us > to)
      continue;
    begin(q, WIRE_ITEM, 0);
    wire_put(q->out, W_SAMPLE, str_make(s, sizeof(*s)));
    finish(q);
  }
  agree(q);
}

static void ask_status(struct question *q)
{
  begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, q->warden->boxes.n);
  wire_put_u64(q->out, W_STARTED, (uint64_t)q->warden->started_us);
  finish(q);
}

static const struct {
  enum wire_type type;
  void (*answer)(struct question *q);
} questions[] = {
    {WIRE_AUTH, ask_auth},           {WIRE_BOX_CREATE, ask_create},       {WIRE_BOX_GET, ask_get},
    {WIRE_BOX_LIST, ask_list},       {WIRE_BOX_KILL, ask_kill},           {WIRE_BOX_TIMEOUT, ask_timeout},
    {WIRE_BOX_DOOR, ask_door},       {WIRE_BOX_USAGE, ask_usage},         {WIRE_TEMPLATE_LIST, ask_templates},
    {WIRE_TEMPLATE_FIND, ask_template}, {WIRE_TEAM_LIST, ask_teams},      {WIRE_KEY_CREATE, ask_key_create},
    {WIRE_KEY_LIST, ask_keys},       {WIRE_KEY_RENAME, ask_key_rename},   {WIRE_KEY_DELETE, ask_key_delete},
    {WIRE_STATUS, ask_status},
};

static void desk_packet(struct link *l, struct str packet, int fd, void *arg)
{
  if (fd >= 0)
    close(fd);
  if (wire_check(packet)) {
    log_error("a gate sent a broken packet of %zu bytes", packet.n);
    return;
  }
  static _Alignas(8) char copy[WIRE_MAX]; /* answers may re-enter the link's buffer */
  memcpy(copy, packet.p, packet.n);
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  struct question q = {.warden = arg, .link = l, .packet = {copy, packet.n}, .out = &out};
  q.id = wire_head(q.packet)->id;
  q.team = wire_get(q.packet, W_TEAM);
  for (size_t i = 0; i < ARRAY_LEN(questions); i++)
    if (questions[i].type == wire_head(q.packet)->type) {
      questions[i].answer(&q);
      return;
    }
  refuse(&q, -ENOSYS, "the warden does not know this request");
}

static void desk_closed(struct link *l, void *arg)
{
  struct warden *w = arg;
  for (size_t i = 0; i < w->links.n; i++)
    if (w->links.p[i] == l)
      vec_remove_swap(&w->links, i);
  link_free(l);
}

const struct link_ops desk_ops = {desk_packet, desk_closed};
