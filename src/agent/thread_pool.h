/* SPDX-License-Identifier: Apache-2.0 */
/* thread_pool.h - jobs that may wait for a disk, done on a few threads beside the loop.
 *
 * libuv's own pool ends the program when a thread can't be made, and pid 1 of a box that has reached its limit of
 * processes must not end. Here the caller gets an error instead. Threads are launched when there is work and leave
 * after some idle seconds, so an idle agent has none. */
#ifndef CLOCHE_AGENT_THREAD_POOL_H
#define CLOCHE_AGENT_THREAD_POOL_H

#include "base/base.h"
#include <uv.h>

struct work {
  void (*run)(struct work *w);  /* on a thread */
  void (*done)(struct work *w); /* on the loop; the work may be freed or queued again here */
  void *data;
  struct work *next;
};

int work_start(uv_loop_t *loop); /* once, before the first job; 0 or -errno */
int work_queue(struct work *w);  /* 0, or -errno when no thread is there and none can be made */

#endif
