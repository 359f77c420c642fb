/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_queue.h - dumps and restores: worker threads and disk for a bounded number of them at a time. A team has
 * `checkpoint_jobs` at once, all together twice as many, by turns (fair_queue.h): a box that makes its dump slow holds
 * up its own team's. */
#ifndef CLOCHE_WARDEN_CHECKPOINT_QUEUE_H
#define CLOCHE_WARDEN_CHECKPOINT_QUEUE_H

#include "wire/fair_queue.h"
#include <uv.h>

struct warden;

struct checkpoint_job {
  struct fair_queue_item item;
  uv_work_t work;
  struct warden *warden;
  void (*act)(struct checkpoint_job *checkpoint_job);  /* on a worker */
  void (*done)(struct checkpoint_job *checkpoint_job); /* on the loop; may free it */
};

/* The owner fills act and done. */
void checkpoint_queue_add(struct warden *w, const char *team, struct checkpoint_job *t);
bool checkpoint_queue_waits(struct warden *w); /* a job has no thread yet */

#endif
