/* SPDX-License-Identifier: Apache-2.0 */
/* ns_pool.c - see ns_pool.h. One is made at a time, on a worker, and none while a box is being launched. */
#include "warden/warm/ns_pool.h"

#include "warden/core/id_slots.h"
#include "warden/core/box_spec.h"
#include "warden/db/catalog.h"
#include "warden/core/warden_state.h"
#include "warden/warm/zygote.h"
#include "warden/core/worker_pool.h"
#include <stdio.h>

#define NS_COLD_US 600000000

struct ns_pool {
  struct pooled_ns *first;
  size_t n;
  struct ns_kind kind; /* asked for last */
  int64_t asked_us;    /* 0 = never */
  bool coming, broken;
};

static struct ns_pool *ns_pool_of(struct warden *w)
{
  w->ns_pool = w->ns_pool ? w->ns_pool : xcalloc(1, sizeof(*w->ns_pool));
  return w->ns_pool;
}

struct making {
  uv_work_t work;
  struct warden *warden;
  struct pooled_ns *pooled_ns;
  struct ns_kind kind;
  struct arena arena;
  struct jail_spec spec;
  struct jail_net net;
  int result;
  struct err err;
};

static bool same(const struct ns_kind *a, const struct ns_kind *b)
{
  return a->owner == b->owner && a->cpus == b->cpus && a->memory_mb == b->memory_mb;
}

/* ---- leaving ---- */

struct leaving {
  uv_work_t work;
  struct warden *warden;
  struct pooled_ns *pooled_ns;
};

static void leave_work(uv_work_t *work)
{
  struct leaving *l = work->data;
  jail_created_free(l->pooled_ns->created);
}

static void leave_done(uv_work_t *work, int status)
{
  struct leaving *l = work->data;
  slot_mark(l->warden, l->pooled_ns->slot, false);
  l->warden->removals--;
  free(l->pooled_ns);
  free(l);
}

void ns_pool_drop(struct warden *w, struct pooled_ns *pooled_ns)
{
  if (!pooled_ns)
    return;
  struct leaving *l = xcalloc(1, sizeof(*l));
  *l = (struct leaving){.warden = w, .pooled_ns = pooled_ns};
  l->work.data = l;
  w->removals++;
  worker_pool_queue(w, "", &l->work, leave_work, leave_done);
}

static struct pooled_ns *pop(struct warden *w)
{
  struct pooled_ns *b = ns_pool_of(w)->first;
  if (b) {
    ns_pool_of(w)->first = b->next;
    ns_pool_of(w)->n--;
  }
  return b;
}

void ns_pool_drain(struct warden *w)
{
  for (struct pooled_ns *b; (b = pop(w));)
    ns_pool_drop(w, b);
}

/* ---- making ---- */

static void make_work(uv_work_t *work)
{
  struct making *m = work->data;
  m->result = jail_create(&m->spec, &m->pooled_ns->created, &m->err);
}

static void make_done(uv_work_t *work, int status)
{
  struct making *m = work->data;
  struct warden *w = m->warden;
  struct pooled_ns *b = m->pooled_ns;
  w->launches--;
  ns_pool_of(w)->coming = false;
  if (m->result) {
    log_warn("namespaces not pre-created: %s", m->err.msg);
    ns_pool_of(w)->broken = true; /* until somebody asks again */
    slot_mark(w, b->slot, false);
    free(b);
  } else if (w->stopping || !same(&m->kind, &ns_pool_of(w)->kind)) {
    ns_pool_drop(w, b);
  } else {
    b->next = ns_pool_of(w)->first;
    ns_pool_of(w)->first = b;
    ns_pool_of(w)->n++;
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
  struct pooled_ns *b = m->pooled_ns = xcalloc(1, sizeof(*b));
  snprintf(b->name, sizeof(b->name), "ns-");
  random_id(b->name + 3, 16);
  b->slot = slot;
  m->warden = w;
  m->kind = ns_pool_of(w)->kind;
  box_ns_spec(w, &m->kind, b->name, slot, &m->arena, &m->spec, &m->net);
  m->work.data = m;
  ns_pool_of(w)->coming = true;
  w->launches++;
  worker_pool_queue(w, "", &m->work, make_work, make_done);
}

void ns_pool_maintain(struct warden *w, bool memory_short)
{
  struct ns_pool *s = ns_pool_of(w);
  if (!s->asked_us || w->stopping)
    return;
  if (memory_short || clock_mono_us() - s->asked_us > NS_COLD_US)
    ns_pool_drain(w);
  else if (s->n < w->config->nets_ready && !s->coming && !s->broken) {
    if (w->launches)
      w->refill = true; /* they go first */
    else
      make_one(w);
  }
}

/* ---- taking ---- */

static struct ns_kind kind_of(struct warden *w, struct build *b)
{
  struct zygote *z = w->config->zygotes && b->row.kind == BUILD_PLAIN ? zygote_of(w, b) : NULL;
  return (struct ns_kind){
      .owner = zygote_ready(z) ? zygote_user(z) : 0, .cpus = b->row.cpus, .memory_mb = b->row.memory_mb};
}

struct pooled_ns *ns_pool_take(struct warden *w, struct build *b)
{
  struct ns_pool *s = ns_pool_of(w);
  if (!w->config->nets_ready)
    return NULL;
  struct ns_kind kind = kind_of(w, b);
  if (!same(&kind, &s->kind))
    ns_pool_drain(w);
  s->kind = kind;
  s->asked_us = clock_mono_us();
  s->broken = false;
  w->refill = true;
  return pop(w);
}
