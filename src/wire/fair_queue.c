/* SPDX-License-Identifier: Apache-2.0 */
/* fair_queue.c - see fair_queue.h. */
#include "wire/fair_queue.h"

struct fair_queue_team {
  char *name;
  unsigned running;
  struct fair_queue_item *first, **last;
  struct fair_queue_team *next; /* in the ring, while it has something waiting */
};

static struct fair_queue_team *team_of(struct fair_queue *f, struct str name)
{
  struct str key = name.n ? name : STR("-"); /* a map's key is not empty */
  struct fair_queue_team *t = map_get(&f->teams, key);
  if (t)
    return t;
  t = xcalloc(1, sizeof(*t));
  t->name = xstrndup(key.p, key.n);
  t->last = &t->first;
  map_put(&f->teams, key, t);
  return t;
}

static void team_forget(struct fair_queue *f, struct fair_queue_team *t)
{
  if (t->running || t->first)
    return;
  map_del(&f->teams, str_of(t->name));
  free(t->name);
  free(t);
}

static void ring_join(struct fair_queue *f, struct fair_queue_team *t)
{
  if (f->ring) {
    t->next = f->ring->next;
    f->ring->next = t;
  } else {
    t->next = t;
  }
  f->ring = t;
}

/* `before` is the team in front of it in the ring. */
static void ring_leave(struct fair_queue *f, struct fair_queue_team *before)
{
  struct fair_queue_team *t = before->next;
  before->next = t->next;
  if (f->ring == t)
    f->ring = before == t ? NULL : before;
  t->next = NULL;
}

void fair_queue_push(struct fair_queue *f, struct str team, struct fair_queue_item *item)
{
  struct fair_queue_team *t = team_of(f, team);
  if (!t->first)
    ring_join(f, t);
  *item = (struct fair_queue_item){.team = t};
  *t->last = item;
  t->last = &item->next;
  f->waiting++;
}

/* Takes it out of its team's queue; a team without any other leaves the ring. */
static void take(struct fair_queue *f, struct fair_queue_team *before, struct fair_queue_item **at)
{
  struct fair_queue_team *t = before->next;
  struct fair_queue_item *item = *at;
  *at = item->next;
  if (t->last == &item->next)
    t->last = at;
  item->next = NULL;
  f->waiting--;
  if (!t->first)
    ring_leave(f, before);
}

struct fair_queue_item *fair_queue_next(struct fair_queue *f)
{
  if (!f->ring || f->running >= f->places)
    return NULL;
  struct fair_queue_team *end = f->ring, *before = end;
  do {
    struct fair_queue_team *t = before->next;
    if (t->running < f->share) {
      struct fair_queue_item *item = t->first;
      f->ring = t; /* those behind it come first */
      take(f, before, &t->first);
      item->runs = true;
      t->running++;
      f->running++;
      return item;
    }
    before = t;
  } while (before != end);
  return NULL;
}

void fair_queue_done(struct fair_queue *f, struct fair_queue_item *item)
{
  struct fair_queue_team *t = item->team;
  item->team = NULL;
  item->runs = false;
  t->running--;
  f->running--;
  team_forget(f, t);
}

bool fair_queue_cancel(struct fair_queue *f, struct fair_queue_item *item)
{
  struct fair_queue_team *t = item->team;
  if (!t || item->runs)
    return false;
  struct fair_queue_team *before = t;
  while (before->next != t)
    before = before->next;
  struct fair_queue_item **at = &t->first;
  while (*at != item)
    at = &(*at)->next;
  take(f, before, at);
  item->team = NULL;
  team_forget(f, t);
  return true;
}
