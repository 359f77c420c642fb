/* SPDX-License-Identifier: Apache-2.0 */
/* warden.h - the root role: owns every box. Start reading at warden.c (the loop and its beginnings), then handlers.c
 * (what gates ask), box.c (one box's life), catalog.c (teams and templates), store.c (what survives). */
#ifndef CLOCHE_WARDEN_H
#define CLOCHE_WARDEN_H

#include "base/base.h"
#include "jail/checkpoint/checkpoint.h"
#include "jail/net/jail_net.h"
#include "warden/db/catalog.h"
#include "wire/fair_queue.h"
#include "wire/ipc.h"
#include "warden/db/store.h"
#include "warden/warden_config.h"
#include "wire/wire.h"
#include <uv.h>

struct builder;

/* What must be the same for a box to stand in a blank, and the blanks there are: see ns_pool.h. */
struct ns_kind {
  uint32_t owner; /* host user of the zygote whose forks enter; 0 = none */
  unsigned cpus, memory_mb;
};
struct ns_pool {
  struct pooled_ns *first;
  size_t n;
  struct ns_kind kind; /* asked for last */
  int64_t asked_us;    /* 0 = never */
  bool coming, broken;
};

struct warden {
  const struct warden_config *config;
  uv_loop_t *loop;
  struct store *store;
  struct catalog *catalog;
  char instance[24];               /* names all host objects */
  char secret[2 * SHA256_LEN + 1]; /* tokens are HMACs under it */
  char runtime[80];                /* hash of the staged runtime layer */
  int64_t started_us;

  struct map boxes; /* id -> struct box */
  struct token_index
      *token_index;        /* access tokens of secure boxes, to find the one that signed a URL; see token_index.h */
  struct storage *storage; /* see storage_quota.h; made when needed */
  struct map quotas;       /* team -> its count of running boxes and its rate; see quota.h */
  uint64_t launches_total, launches_failed, resumes_total, pauses_total, ends_total;
  size_t launches;    /* launches under way */
  size_t transitions; /* boxes falling asleep or waking up */
  size_t live;        /* known boxes that have walls: all but those that are paused on disk */
  char heaps[512];    /* kept memory of zygotes */
  struct jail_criu criu;
  bool checkpoints_on; /* boxes can be written to disk; else checkpoints_why */
  char checkpoints_why[512];
  struct fair_queue workers,
      checkpoints; /* work off the loop, and dumps and restores: see worker_pool.h, checkpoint_queue.h */
  uint64_t *slots; /* bitmap of id ranges in use */
  size_t nslots;
  struct jail_net_config net;
  bool net_on;
  struct builder *builder;        /* see builder.h */
  struct map zygotes, warm_pools; /* footing's key -> struct zygote; build id -> struct warm_pool */
  struct ns_pool ns_pool;
  struct warm_pool *spare_pool; /* the one with spare boxes */
  int64_t asked_us;             /* when a box was last asked for */
  bool refill;                  /* the pool wants tending when the loop has time */
  uv_check_t after;
  uv_timer_t sampler, housekeeper, refiller, idler;
  bool sampling, stopping;
  int64_t gc_us;    /* when what nothing needs is cleared next */
  int64_t heaps_us; /* and kept memory of zygotes */
  size_t removals;  /* boxes whose remains are being cleared */

  struct ipc *control;
  VEC(struct ipc *) links;
  uv_poll_t line; /* commands of the host's root user */
  int line_fd;
};

/* The role's whole life; returns the exit status. fd 3 is the supervisor's control socket. */
int warden_main(const struct warden_config *config);

#endif
