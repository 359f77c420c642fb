/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - launching boxes: namespaces and mounts, the boot packet, the agent's answer. On a worker thread, for a
 * client or for a warm pool, or at once from a box of a warm pool. */
#ifndef CLOCHE_WARDEN_LAUNCH_H
#define CLOCHE_WARDEN_LAUNCH_H

#include "jail/net/jail_net.h"
#include "warden/core/box_state.h"
#include "warden/core/checkpoint_queue.h"
#include "wire/sizes.h"

struct zygote;
struct warm_pool;
struct warm_box;

struct launch {
  uv_work_t work;
  struct checkpoint_job checkpoint_job; /* of a restore */
  struct warden *warden;
  struct box *box;             /* NULL for the pool; not touched by the worker but for what was copied below */
  struct warm_pool *warm_pool; /* whose it will be, for the pool */
  void (*done)(struct launch *launch);
  struct jail_created *created; /* pre-created namespaces, or NULL; owned until the worker has it */
  struct zygote *zygote;        /* whose fork is its first kernel; NULL: a cold Python */
  char name[HOST_NAME_SIZE], dir[DATA_DIR_SIZE];
  unsigned slot;
  bool again; /* a cold start of a box that has files: whatever fails, they stay */
  struct jail_spec spec;
  struct jail_net net; /* when spec.net is set */
  struct arena arena;
  struct buf boot; /* the packet for the agent */
  int boot_fd;     /* where the agent listens and answers; the pool's to keep */
  bool answered;   /* the agent said that it is ready; the end of the socket is still to come */
  uv_poll_t *poll;
  uv_timer_t *timer;
  unsigned patience_s;
  struct jail jail;
  int64_t boot_us, ready_us;                                                       /* see struct wire_trace */
  char checkpoint[CHECKPOINT_NAME_SIZE], was[SECRET_SIZE], runtime[LAYER_ID_SIZE]; /* of a restore */
  bool transient;       /* the same: its checkpoint was made just now */
  struct row_box row;   /* the same: a copy, its texts in the arena */
  struct str authority; /* the same: of its egress; empty = none */
  void *arg;            /* the owner's */
  int result;
  struct err err;
};

#define START_WAIT_S 10 /* src/agent/build/start_command.h: an agent waits so long for its template's command */

/* The launch is freed after done returns. */
/* Of the warm box p; without one a new box, in the namespaces `created` (taken) where there are some. */
void launch_start(struct box *b, struct warm_box *p, struct jail_created *created, void (*done)(struct launch *));
/* From the memory of another box, whose agent knows the secret `was`; the agent then gets its new identity. */
void launch_restore(struct box *b, const char *checkpoint, const char *was, void (*done)(struct launch *), void *arg);
/* Of a row that is filled already, from nothing but its build. */
void launch_from_build(struct box *b, void (*done)(struct launch *), void *arg);
/* From the files a paused box has. */
void launch_cold(struct box *b, void (*done)(struct launch *));
void launch_warm(struct warden *w, struct build *build, struct warm_pool *s, unsigned slot,
                 void (*done)(struct launch *));
/* The same of a build that holds memory: restored, and still frozen. launch_thaw tells it who it is and lets it go. */
void launch_restore_warm(struct warden *w, struct build *build, struct warm_pool *s, unsigned slot,
                         void (*done)(struct launch *));
void launch_thaw(struct box *b, const struct warm_box *p, void (*done)(struct launch *));

#endif
