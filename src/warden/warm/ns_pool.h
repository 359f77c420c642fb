/* blank.h - walls made ahead, for boxes that are born when somebody asks.
 *
 * A blank has what takes longest of a birth: its namespaces, the network's above all, with ids, control groups and the link to the
 * outside; what is missing is a root and a program (jail_prepare). All boxes of the same limits, and of the same loaded Python or
 * none, can stand in it. Those that were asked for last are kept ready, nets_ready of them; they cost no memory to speak of, yet go
 * when it is short, when nobody asks for ten minutes, and at the end. A blank of a daemon that was killed ends by itself. */
#ifndef CLOCHE_BLANK_H
#define CLOCHE_BLANK_H

#include "warden/warden.h"

struct jail_blank;
struct blank {
  struct blank *next;
  struct jail_blank *walls; /* owned */
  char name[32];
  unsigned slot;
};

/* One for a box of this build with a plain way out, or NULL; the next ones are made for the like of it. The caller owns it. */
struct blank *blank_take(struct warden *w, struct build *b);
void blank_drop(struct warden *w, struct blank *blank); /* walls and all, on a worker */
void blanks_tend(struct warden *w, bool memory_short);
void blanks_drain(struct warden *w); /* at the end */

#endif
