/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_handlers.c - how the server is: its own numbers, and those of teams and boxes as far as the settings
 * metrics_teams_max and metrics_boxes_max go. What is beyond them is told in one sum. */
#include "warden/rpc/handlers.h"

#include "warden/box/box.h"
#include "warden/core/box_meter.h"
#include "warden/core/context.h"
#include "warden/core/node.h"
#include "warden/core/storage_quota.h"
#include "warden/warm/warm_pool.h"
#include "warden/webhook/webhooks.h"
#include "wire/sizes.h"
#include <sys/statvfs.h>

void warden_status(struct warden *w, struct wire_status *s)
{
  size_t at = 0;
  struct statvfs fs;
  *s = (struct wire_status){.warm_boxes = warm_pool_count(w)};
  warden_counters(w, s);
  webhooks_figures(w, s);
  node_figures(w, s);
  if (!statvfs(warden_config(w)->data, &fs)) {
    s->disk_free = (uint64_t)fs.f_bavail * fs.f_frsize;
    s->disk_total = (uint64_t)fs.f_blocks * fs.f_frsize;
  }
  for (const struct box *b; (b = box_next(w, &at));) {
    unsigned state = b->row.state;
    s->starting += state == BOX_STARTING;
    s->paused += box_state_paused(state);
    s->checkpoints += b->row.checkpoint[0] != 0;
    s->checkpoint_bytes += b->row.checkpoint_size;
    bool runs = state == BOX_RUNNING || state == BOX_RESUMING;
    s->running += runs;
    s->cpus += runs ? b->row.cpus : 0;
    s->memory += runs ? (uint64_t)b->row.memory_mb << 20 : 0;
  }
}

void handle_status(struct request *q)
{
  struct wire_status s;
  warden_status(q->warden, &s);
  reply_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, box_count(q->warden));
  wire_put(q->out, W_STATUS, str_make(&s, sizeof(s)));
  reply_send(q);
}

/* ---- teams ---- */

struct team_row {
  char id[UUID_SIZE];
  struct wire_team_metrics m;
};
struct team_rows {
  VEC(struct team_row) rows;
  size_t most;
  struct wire_team_metrics others;
};

static struct wire_team_metrics *row_of(struct team_rows *t, struct str id, bool add)
{
  struct team_row row = {0};
  for (size_t i = 0; i < t->rows.n; i++)
    if (str_is(id, t->rows.p[i].id))
      return &t->rows.p[i].m;
  if (!add || t->rows.n >= t->most || str_copyz(id, row.id, sizeof(row.id)))
    return &t->others;
  vec_push(&t->rows, row);
  return &t->rows.p[t->rows.n - 1].m;
}

static void count_boxes(struct warden *w, struct team_rows *t)
{
  size_t at = 0;
  for (const struct box *b; (b = box_next(w, &at));) {
    struct wire_team_metrics *m = row_of(t, str_of(b->row.team), true);
    m->running += b->row.state == BOX_RUNNING || b->row.state == BOX_RESUMING;
    m->paused += box_state_paused(b->row.state);
  }
}

static void send_team(struct request *q, const struct team_row *row, const struct wire_team_metrics *m)
{
  const struct row_team *team = row ? catalog_team(warden_catalog(q->warden), str_of(row->id)) : NULL;
  reply_begin(q, WIRE_ITEM, 0);
  if (row)
    wire_putz(q->out, W_TEAM, row->id);
  if (team)
    wire_putz(q->out, W_NAME, team->name);
  wire_put(q->out, W_SAMPLE, str_make(m, sizeof(*m)));
  reply_send(q);
}

static void tell_teams(struct request *q)
{
  struct team_rows t = {.most = warden_config(q->warden)->metrics_teams_max};
  struct str list = wire_get(q->packet, W_REF), id;
  if (!t.most)
    return;
  while (list.n) {
    str_cut(list, ',', &id, &list);
    if (catalog_team(warden_catalog(q->warden), id))
      row_of(&t, id, true);
  }
  count_boxes(q->warden, &t);
  for (size_t i = 0; i < t.rows.n; i++) {
    struct storage_use use = {0};
    storage_use(q->warden, str_of(t.rows.p[i].id), &use);
    t.rows.p[i].m.storage = use.bytes;
    t.rows.p[i].m.storage_known = 1;
    t.rows.p[i].m.snapshots = use.snapshots;
    send_team(q, &t.rows.p[i], &t.rows.p[i].m);
  }
  send_team(q, NULL, &t.others);
  vec_free(&t.rows);
}

/* ---- boxes ---- */

static void add_box(const struct box *b, struct wire_box_metrics *m)
{
  const struct wire_sample *s = b->usage.n ? &b->usage.samples[b->usage.n - 1] : NULL;
  m->state = b->row.state;
  if (s && b->row.state == BOX_RUNNING) {
    m->mem_used += s->mem_used;
    m->disk_used += s->disk_used;
  }
  m->mem_total += (uint64_t)b->row.memory_mb << 20;
  m->disk_total += (uint64_t)b->row.disk_mb << 20;
}

static void send_box(struct request *q, const struct box *b, const struct wire_box_metrics *m)
{
  reply_begin(q, WIRE_ITEM, 0);
  if (b) {
    wire_putz(q->out, W_ID, b->row.id);
    wire_putz(q->out, W_TEAM, b->row.team);
    wire_putz(q->out, W_ALIAS, b->row.alias[0] ? b->row.alias : b->row.template_id);
  }
  wire_put(q->out, W_SAMPLE, str_make(m, sizeof(*m)));
  reply_send(q);
}

static void tell_boxes(struct request *q)
{
  struct warden *w = q->warden;
  struct box_reading others;
  warden_metered_others(w, &others);
  struct wire_box_metrics rest = {.cpu_usec = others.cpu_usec, .net_in = others.net_in, .net_out = others.net_out};
  size_t at = 0;
  if (!warden_config(w)->metrics_boxes_max)
    return;
  for (const struct box *b; (b = box_next(w, &at));) {
    const struct box_reading *t = &b->meter.total;
    struct wire_box_metrics m = {.cpu_usec = t->cpu_usec, .net_in = t->net_in, .net_out = t->net_out};
    if (b->row.state == BOX_STARTING || b->row.state == BOX_ENDED)
      continue;
    if (!b->meter.own) {
      add_box(b, &rest);
      continue;
    }
    add_box(b, &m);
    send_box(q, b, &m);
  }
  send_box(q, NULL, &rest);
}

void handle_metrics(struct request *q)
{
  tell_teams(q);
  tell_boxes(q);
  handle_status(q);
}
