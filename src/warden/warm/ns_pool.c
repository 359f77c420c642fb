/* blank.c - see blank.h. One is made at a time, on a worker, and none while a box is being born. */
#include "warden/warm/ns_pool.h"

#include "warden/id_slots.h"
#include "warden/box_spec.h"
#include "warden/warm/zygote.h"
#include <stdio.h>

#define BLANK_COLD_US 600000000

struct making {
  uv_work_t work;
  struct warden *warden;
  struct blank *blank;
  struct blank_kind kind;
  struct arena arena;
  struct jail_spec spec;
  struct jail_net net;
  int result;
  struct err err;
};

static bool same(const struct blank_kind *a, const struct blank_kind *b)
{
  return a->owner == b->owner && a->cpus == b->cpus && a->memory_mb == b->memory_mb;
}

/* ---- leaving ---- */

struct leaving {
  uv_work_t work;
  struct warden *warden;
  struct blank *blank;
};

static void leave_work(uv_work_t *work)
{
  struct leaving *l = work->data;
  jail_blank_free(l->blank->walls);
}

static void leave_done(uv_work_t *work, int status)
{
  struct leaving *l = work->data;
  slot_mark(l->warden, l->blank->slot, false);
  l->warden->removals--;
  free(l->blank);
  free(l);
}

void blank_drop(struct warden *w, struct blank *blank)
{
  if (!blank)
    return;
  struct leaving *l = xcalloc(1, sizeof(*l));
  *l = (struct leaving){.warden = w, .blank = blank};
  l->work.data = l;
  w->removals++;
  uv_queue_work(w->loop, &l->work, leave_work, leave_done);
}

static struct blank *pop(struct warden *w)
{
  struct blank *b = w->blanks.first;
  if (b) {
    w->blanks.first = b->next;
    w->blanks.n--;
  }
  return b;
}

void blanks_drain(struct warden *w)
{
  for (struct blank *b; (b = pop(w));)
    blank_drop(w, b);
}

/* ---- making ---- */

static void make_work(uv_work_t *work)
{
  struct making *m = work->data;
  m->result = jail_prepare(&m->spec, &m->blank->walls, &m->err);
}

static void make_done(uv_work_t *work, int status)
{
  struct making *m = work->data;
  struct warden *w = m->warden;
  struct blank *b = m->blank;
  w->births--;
  w->blanks.coming = false;
  if (m->result) {
    log_warn("no walls made ahead: %s", m->err.msg);
    w->blanks.broken = true; /* until somebody asks again */
    slot_mark(w, b->slot, false);
    free(b);
  } else if (w->stopping || !same(&m->kind, &w->blanks.kind)) {
    blank_drop(w, b);
  } else {
    b->next = w->blanks.first;
    w->blanks.first = b;
    w->blanks.n++;
  }
  arena_free(&m->arena);
  free(m);
  w->refill = true;
}

static void make_one(struct warden *w)
{
  unsigned slot;
  if (slot_take(w, &slot))
    return;
  struct making *m = xcalloc(1, sizeof(*m));
  struct blank *b = m->blank = xcalloc(1, sizeof(*b));
  snprintf(b->name, sizeof(b->name), "blank-");
  random_id(b->name + 6, 16);
  b->slot = slot;
  m->warden = w;
  m->kind = w->blanks.kind;
  walls_blank(w, &m->kind, b->name, slot, &m->arena, &m->spec, &m->net);
  m->work.data = m;
  w->blanks.coming = true;
  w->births++;
  uv_queue_work(w->loop, &m->work, make_work, make_done);
}

void blanks_tend(struct warden *w, bool memory_short)
{
  struct blanks *s = &w->blanks;
  if (!s->asked_us || w->stopping)
    return;
  if (memory_short || clock_mono_us() - s->asked_us > BLANK_COLD_US)
    blanks_drain(w);
  else if (s->n < w->config->nets_ready && !s->coming && !s->broken) {
    if (w->births)
      w->refill = true; /* they go first */
    else
      make_one(w);
  }
}

/* ---- taking ---- */

static struct blank_kind kind_of(struct warden *w, struct build *b)
{
  struct zygote *z = w->config->zygotes && b->row.kind == BUILD_PLAIN ? zygote_of(w, b) : NULL;
  return (struct blank_kind){.owner = zygote_ready(z) ? zygote_user(z) : 0, .cpus = b->row.cpus, .memory_mb = b->row.memory_mb};
}

struct blank *blank_take(struct warden *w, struct build *b)
{
  struct blanks *s = &w->blanks;
  if (!w->config->nets_ready)
    return NULL;
  struct blank_kind kind = kind_of(w, b);
  if (!same(&kind, &s->kind))
    blanks_drain(w);
  s->kind = kind;
  s->asked_us = clock_mono_us();
  s->broken = false;
  w->refill = true;
  return pop(w);
}
