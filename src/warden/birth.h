/* birth.h - making one box on a worker thread: walls, boot packet, the agent's word that it is ready. */
#ifndef CLOCHE_BIRTH_H
#define CLOCHE_BIRTH_H

#include "warden/box.h"

struct birth {
  uv_work_t work;
  struct box *box; /* not touched by the worker but for what was copied below */
  void (*done)(struct birth *birth);
  struct jail_spec spec;
  struct arena arena;
  struct buf boot; /* the packet for the agent */
  struct jail jail;
  int result;
  struct err err;
};

#define BIRTH_READY_MS 20000 /* longest wait for the agent's word */

void birth_start(struct box *b, void (*done)(struct birth *)); /* the birth is freed after done returns */

#endif
