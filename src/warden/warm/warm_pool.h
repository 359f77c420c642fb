/* shelf.h - boxes made ahead. A parked box is complete but for its identity: walls up, agent listening, Python forked and
 * waiting. A create takes one and tells it who it is; the pool fills up again behind it, and grows for a while where a crowd
 * found too few. Templates become hot by being used, and cold when nobody wanted them for a while.
 *
 * Of a template that holds memory (its start command runs) the boxes are restored and frozen: not a moment of theirs passes
 * before somebody has one. They cost what the command has in memory, so they are fewer (ready_pool) and have a limit in
 * megabytes for all templates together (ready_pool_mb). A shelf is a build's, so a tag that moves leads to another shelf. */
#ifndef CLOCHE_SHELF_H
#define CLOCHE_SHELF_H

#include "warden/box.h"

struct parked {
  struct parked *next;
  struct jail jail;
  char name[64], dir[512];
  unsigned slot;
  int boot; /* the agent waits for its identity here; -1: it is frozen */
  uv_poll_t *watch;
  struct shelf *shelf;
};

#define POOL_COLD_US  600000000 /* a template nobody used for ten minutes keeps no boxes ready */
#define POOL_STALE_US 60000000  /* nor a build for a minute that its default tag no longer points to */

/* A ready box of this build, or NULL. Marks the template as hot either way. */
struct parked *shelf_take(struct warden *w, struct build *b);
/* A create that got NULL is over. */
void shelf_caught_up(struct warden *w, struct build *b);
void parked_drop(struct parked *p);                 /* the box too */
void shelf_heat(struct warden *w, struct build *b); /* begins to fill */
void shelf_load(struct warden *w, struct build *b); /* a new build: its Python is loaded, boxes are made when one is asked for */
void shelf_tend(struct warden *w);                  /* now and then: cold shelves are emptied, others filled */
void shelf_drain(struct warden *w);                 /* at the end: all parked boxes go */
bool shelf_low(struct warden *w);                   /* one in use has less than half of its boxes */
size_t shelf_count(struct warden *w);

#endif
