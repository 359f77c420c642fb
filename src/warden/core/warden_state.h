/* SPDX-License-Identifier: Apache-2.0 */
/* warden_state.h - what the modules of the warden share: the constants of this run, the boxes, and a pointer to the
 * state of each module, which only that module can look into. */
#ifndef CLOCHE_WARDEN_STATE_H
#define CLOCHE_WARDEN_STATE_H

#include "base/base.h"
#include "jail/checkpoint/checkpoint.h"
#include "warden/db/catalog.h"
#include "warden/db/store.h"
#include "warden/core/box_meter.h"
#include "warden/core/warden_config.h"
#include "wire/id_filter.h"
#include "wire/sizes.h"
#include <uv.h>

struct box;
struct zygote;

/* Calls from a lower module to one above it, which it does not know. warden.c sets them once, before anything else. */
struct warden_hooks {
  bool (*checkpoint_borrowed)(struct warden *w,
                              const char *what); /* a build at work will name this checkpoint or layer */
  bool (*zygote_in_use)(struct warden *w,
                        const struct zygote *z);                 /* a warm box or a build's box may be entered by it */
  void (*zygote_changed)(struct warden *w, bool ready);          /* it is ready, or has ended */
  void (*box_expired)(struct box *b);                            /* its timeout is over */
  void (*box_chosen)(struct box *b);                             /* to be paused: the machine needs its memory */
  bool (*box_abandoned)(struct box *b);                          /* it ends; true: a transition under way destroys it */
  void (*build_released)(struct warden *w, struct build *build); /* a box of this build is gone */
  size_t (*clear_layers)(struct warden *w, struct str team);     /* a team is over its quota: unneeded layers go */
  void (*disk_short)(struct warden *w);                          /* below disk_stop_mb: what is being built is ended */
};

struct warden {
  const struct warden_config *config;
  const struct warden_hooks *hooks;
  uv_loop_t *loop;
  struct store *store;
  struct catalog *catalog;
  char instance[INSTANCE_SIZE];    /* names all host objects */
  char secret[2 * SHA256_LEN + 1]; /* tokens are HMACs under it */
  char runtime[LAYER_ID_SIZE];     /* hash of the staged runtime layer */
  int64_t started_us;
  bool stopping;
  bool draining; /* node.h */
  int64_t node_since_us;

  struct map boxes;      /* id -> struct box */
  struct id_filter *ids; /* of all of them, for the gates */
  size_t live;           /* known boxes that have a jail: all but those that are paused on disk */
  uint64_t launches_total, launches_failed, resumes_total, pauses_total, ends_total;
  size_t launches;    /* under way */
  size_t transitions; /* under way */
  size_t removals;    /* under way: jails and directories of ended boxes */
  size_t kept_back;   /* jails that could not be removed yet, with their id ranges */
  bool refill;        /* the warm pools want maintenance when the loop has time */

  struct jail_criu criu;
  bool checkpoints_on; /* boxes can be written to disk; else checkpoints_why */
  char checkpoints_why[512];

  bool microvm_on; /* guests run here; else microvm_why */
  char microvm_why[512];

  /* Each is opaque to all but the module of its name, which makes it at first use. */
  struct reply_links *links;
  struct cluster *cluster;
  struct worker_pool *workers;
  struct checkpoint_queue *checkpoint_queue;
  struct checkpoint_store *checkpoint_store;
  struct id_slots *slots;
  struct egress *egress;
  struct net_log *net_log;
  struct quotas *quotas;
  int64_t meters_us; /* when the teams' meters were taken last, monotonic */
  struct storage *storage;
  struct token_index *token_index;
  struct zygotes *zygotes;
  struct ns_pool *ns_pool;
  struct warm_pools *warm_pools;
  struct box_sampler *sampler;
  struct box_meters meters;
  struct volume_holds *volume_holds;
  struct volume_watch *volume_watch; /* under way, or NULL */
  int64_t volumes_measured_us;       /* when it was done last, monotonic */
  struct builder *builder;
  struct webhooks *webhooks;
  struct volume_content *volume_content;
  struct secrets *secrets;
  struct policies *policies;
  struct login_codes *login_codes;
  struct memory_guard *memory_guard;
  struct disk_guard *disk_guard;
  struct ipc *exporter; /* the link to it, or NULL; see telemetry.h */
};

#endif
