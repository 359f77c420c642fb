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
#include "warden/build/source.h"
#include "warden/db/store.h"
#include "wire/wire.h"
#include <uv.h>

struct warden_config {
  const char *data;        /* directory of all state */
  const char *templates;   /* store of ready-made templates to take in */
  const char *runtime;     /* directory with usr/lib/cloche/... to stage */
  const char *domain;      /* told to clients as the boxes' domain; "" = none */
  const char *admin_token; /* what an administrator shows; "" = there is none */
  uint32_t id_base;        /* first host uid of the boxes' ranges */
  unsigned boxes_max;      /* running boxes at once */
  unsigned pids_max, open_files, inotify_instances;
  bool internet;                      /* boxes may have outbound networking */
  const char *net_pool, *resolver;    /* IPv4 text; resolver "" = the host's own */
  unsigned net_connections;           /* open at a time per box */
  uint64_t net_rate;                  /* bytes per second each way per box; 0 = no cap */
  unsigned pool;                      /* warm boxes per template in use; 0 = none */
  unsigned pool_crowd;                /* beside them at most, for a while after so many were missing at once */
  unsigned ready_pool, ready_pool_mb; /* the same of templates that hold memory, each; and of all of them together */
  unsigned pool_calm_s;               /* that while: half of them go with each */
  unsigned pool_spare;                /* percent of the memory at hand for spare boxes of the build asked for last */
  unsigned nets_ready;                /* walls with their network namespaces made ahead */
  unsigned disks_ready, disks_kept;   /* disks of boxes made ahead per size; with those of ended boxes at most */
  unsigned disk_wipe_files, disk_wipe_mb;      /* what one of those may have had on it */
  bool zygotes;                                /* Python is loaded once per template and forked into boxes */
  unsigned zygotes_max;                        /* loaded for private templates at most, the latest used ones */
  unsigned agent_s;                            /* longest wait for an agent's answer */
  unsigned keep_ended_s;                       /* how long the cause of an end is remembered */
  unsigned timeout_max_s;                      /* longest life of one run */
  unsigned team_boxes_max, team_creates_per_s; /* of a team that has no limits of its own; 0 = none */
  unsigned team_memory_mb;                     /* of the running boxes of such a team together; 0 = no limit */
  unsigned box_cpus_max, box_memory_max_mb;    /* of one box, whoever asks; 0 = what the machine has */
  unsigned box_disk_max_mb;                    /* the same; 0 = no limit */
  unsigned team_storage_mb;                    /* uploads, snapshots and paused boxes of such a team; 0 = no limit */
  unsigned team_paused_max, team_snapshots_max;
  unsigned disk_reserve_mb;               /* of the disk's free space, for nobody's boxes */
  unsigned log_bytes;                     /* size of a box's log ring; 0 = no logs */
  unsigned log_keep_mb;                   /* all logs of ended boxes together */
  unsigned download_cache_mb;             /* per team, for package managers in builds; 0 = none */
  unsigned cache_days;                    /* how long what no build needs is kept after its last use */
  struct source_rules source;             /* what templates may begin with */
  unsigned builds_max, team_builds_max;   /* templates built at once, on this server and of one team */
  unsigned team_templates_max;            /* templates and snapshots of one team */
  unsigned build_seconds, build_log_mb;   /* longest build, largest log of one */
  unsigned keep_box_s;                    /* life of the box of a failed build, where it was asked for */
  unsigned build_wait_s, build_keep_s;    /* an unstarted build lives so long, a failed one is remembered so long */
  const char *checkpoint;                 /* auto, or frozen: boxes sleep in memory only */
  const char *criu;                       /* the program */
  unsigned checkpoint_jobs, checkpoint_s; /* dumps and restores at once; the longest of one */
  unsigned checkpoint_zstd;               /* level at which images of boxes that sleep are packed; 0 = they are not */
  unsigned checkpoint_zstd_after_s;       /* how long they have slept by then */
};

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
      checkpoints_active; /* work off the loop, and dumps and restores: see worker_pool.h, checkpoint_queue.h */
  uint64_t *slots;        /* bitmap of id ranges in use */
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

void warden_broadcast(struct warden *w, struct str packet);

#endif
