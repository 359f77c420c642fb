/* turn.h - dumps and restores: worker threads and disk for a bounded number of them at a time, first come first served. */
#ifndef CLOCHE_TURN_H
#define CLOCHE_TURN_H

#include "warden/warden.h"

struct turn {
  uv_work_t work;
  struct warden *warden;
  struct turn *next;
  void (*act)(struct turn *turn);  /* on a worker */
  void (*done)(struct turn *turn); /* on the loop; may free it */
};

/* The owner fills act and done. */
void turn_wait(struct warden *w, struct turn *t);

#endif
