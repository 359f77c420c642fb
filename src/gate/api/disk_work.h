/* SPDX-License-Identifier: Apache-2.0 */
/* disk_work.h - what a gate does with files that it was handed, on threads, so that a slow disk delays whoever asked
 * for it and nothing else.
 *
 * A gate has `upload_threads` of them for archives of builds, and as many for files of volumes, whose filesystem may be
 * another and stand still; half of each, rounded up, serve one team at once, teams by turns. */
#ifndef CLOCHE_GATE_DISK_WORK_H
#define CLOCHE_GATE_DISK_WORK_H

#include "gate/gate_state.h"
#include "wire/fair_queue.h"

enum disk { DISK_BUILDS, DISK_VOLUMES, DISKS };

struct disk_work {
  struct fair_queue_item place; /* first: fair_queue_next gives it */
  uv_work_t work;
  struct gate *gate;
  enum disk disk;                    /* set by the owner */
  bool started;                      /* a thread has it or will */
  void (*act)(struct disk_work *w);  /* on a thread */
  void (*done)(struct disk_work *w); /* on the loop, never from inside disk_work_queue */
};

/* Starts the threads. A gate does that after it gave up its rights and before the filter, which lets it start none. */
void disk_threads_start(struct gate *g);
void disk_work_queue(struct gate *g, const char *team, struct disk_work *w);
bool disk_work_cancel(struct disk_work *w); /* true: it had not started, and `done` does not come */
/* On a thread: some filesystems wait for a server then. */
void disk_close(struct gate *g, enum disk disk, const char *team, int fd);

#endif
