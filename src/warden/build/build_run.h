/* SPDX-License-Identifier: Apache-2.0 */
/* build_run.h - one build at work, on a thread of its own: from a base through the recipe's steps to layers and a
 * configuration. It owns copies of all it needs and touches neither the catalogue nor the store; the loop hears of its
 * end through `done` and its messages are in the log. */
#ifndef CLOCHE_WARDEN_BUILD_BUILD_RUN_H
#define CLOCHE_WARDEN_BUILD_BUILD_RUN_H

#include "wire/buildlog.h"
#include "wire/recipe.h"
#include "warden/build/build_state.h"
#include "warden/build/source_spec.h"
#include "wire/sizes.h"
#include <stdatomic.h>
#include <uv.h>

struct warden;
struct zygote;

struct build_run {
  struct warden *warden; /* its constants only: config, instance, runtime, networks */
  char id[UUID_SIZE], template_id[TEMPLATE_ID_SIZE], team[UUID_SIZE];
  unsigned slot, cpus, memory_mb, disk_mb;
  struct str packed; /* the recipe's bytes; owned */
  struct arena arena;
  struct recipe recipe;
  /* The base where it is a template: copies. Both NULL: the recipe's image is fetched. */
  char *base_layers, *base_config, *base_name;
  char *mounts;        /* volumes that its steps have (volume_mounts.h); NULL: none */
  struct err base_err; /* set: the base could not be found */

  struct buildlog log;
  atomic_bool cancelled;
  int wake;                      /* eventfd: something was cancelled */
  const char *why;               /* it was cancelled; static text */
  int64_t begun_us, deadline_us; /* monotonic */
  int64_t based_us, stepped_us;  /* when its base and its steps were there; 0 = not yet */

  struct build_state state;
  char step[16]; /* at work, or where it failed: "base", "finalize", a number from 1, or "" */
  bool fresh;    /* nothing is taken from the cache any more */
  char checkpoint[CHECKPOINT_NAME_SIZE],
      secret[SECRET_SIZE]; /* of the ready box, where it could be kept: its memory, and what its agent knows */
  char checkpoint_layer[DATA_PATH_SIZE]; /* what it had written by then */
  uint64_t checkpoint_size, checkpoint_layer_bytes;
  bool borrowed;                                           /* checkpoint and layer are those of an earlier build */
  struct zygote *zygote;                                   /* its loaded Python, once it is ready */
  bool kept;                                               /* it failed, and state holds what it left (recipe.keep) */
  struct source_left left;                                 /* boxes of the unpacker that could not be removed */
  char left_name[HOST_NAME_SIZE], left_dir[DATA_DIR_SIZE]; /* of a box that could not be removed; "": none */
  bool given;                 /* its id range is that of the sandbox that its last box has become (build_keep.h) */
  char kept_box[BOX_ID_SIZE]; /* which sandbox that is; "": none */
  int result;
  struct err err;

  uv_thread_t thread;
  atomic_bool over;
  uv_async_t done;                                   /* data: the job */
  void (*request)(struct build_run *run, void *arg); /* for the loop while the thread waits; or NULL */
  void *request_arg;
  uv_sem_t answered;
};

void build_run_cancel(struct build_run *run, const char *why); /* from the loop; returns at once */
void build_run_free(struct build_run *run);

/* For the steps: a line for the log, and whether to go on. */
void build_say(struct build_run *run, enum log_level level, const char *fmt, ...) PRINTF_LIKE(3, 4);
int build_stopped(struct build_run *run, struct err *err); /* -ECANCELED or -ETIMEDOUT with the reason, else 0 */
/* Has fn called on the loop, where the catalogue and the zygotes may be touched, and waits until it has returned. */
void build_ask(struct build_run *run, void (*fn)(struct build_run *run, void *arg), void *arg);

#endif
