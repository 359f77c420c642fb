/* SPDX-License-Identifier: Apache-2.0 */
/* box_state.h - what is known of one box, for the modules that take part in its life. What can be done with a box is in
 * box.h. */
#ifndef CLOCHE_WARDEN_BOX_STATE_H
#define CLOCHE_WARDEN_BOX_STATE_H

#include "jail/jail.h"
#include "warden/core/box_egress.h"
#include "warden/core/box_meter.h"
#include "warden/core/box_usage.h"
#include "warden/db/catalog.h"
#include "warden/core/reply.h"
#include "wire/sizes.h"
#include <uv.h>

/* What was asked while the box changed its state. */
struct copy;
struct pending_op {
  struct origin origin;
  struct copy *copy; /* to be copied for others (transition.h); the rest is for other requests */
  bool pause;        /* else connect */
  bool cold;         /* without memory */
  bool healthy;      /* a pause: only of a box whose agent answers */
  bool probed;       /* a pause: the agent was asked, and was */
  bool silent;
  bool relief; /* a pause: before its time, for its memory */
  bool disk;   /* a pause: before its time, because it writes while the disk is almost full */
  bool waited; /* for a transition that is over */
  bool joined; /* which resumed the box */
  enum connect_mode mode;
  uint32_t timeout_s;
  int auto_pause; /* from now on: 1 yes, 0 no, -1 as before */
};

struct transition;
struct nursery_listener;

#define BOX_CLIENTS 16

struct box {
  struct warden *warden;
  struct row_box row;
  struct template *template;
  struct build *build;
  struct jail jail;
  char name[HOST_NAME_SIZE]; /* of its cgroup, directory and checkpoints on the host: random, never its id */
  char dir[DATA_DIR_SIZE];
  uv_timer_t *expiry; /* its end time; made at first use */
  int64_t ends_us;    /* the same as its row's end, on the clock that nobody sets */
  uv_poll_t *watch;
  struct nursery_listener *nursery_listener; /* or NULL, see nursery_request.h */
  struct usage usage;
  struct box_meter meter;
  VEC(struct origin) waiting;         /* creates that wait for the launch */
  VEC(struct pending_op) pending_ops; /* what waits for a transition; see pause.h */
  int log_fd;                         /* its log ring, once it was seen; 0 = not yet */
  uint64_t log_exported;              /* to which exporter its ring was given; see telemetry.h */
  struct transition *transition;      /* under way, or NULL */
  uint64_t disk_bytes;                /* of its disk while it is paused; 0 = not counted yet */
  uint64_t disk_seen;                 /* of its disk and volumes when the host's was last not full; see disk_guard.h */
  bool compressed;                    /* its checkpoint is compressed as far as it can be */
  unsigned counted;                   /* for its team as what; enum quota_use */
  bool missed;                        /* none was ready for it, see warm_pool.h */
  bool on_disk;                       /* it has no jail: it is paused on disk; set by box_set_on_disk */
  uint32_t owner;                     /* of its user namespace, once it was asked for; 0 = not yet */
  bool known, live;                 /* in the map of boxes, and so counted in warden.live unless it is paused on disk */
  struct wire_trace trace;          /* of its launch */
  size_t token_index_at;            /* its place in the table of tokens, from 1; 0 = none; see token_index.h */
  uint8_t clients[BOX_CLIENTS][16]; /* who showed its token or its team's key, the latest first; zeros = none */
  bool snapped;                     /* a snapshot of it is under way or waits its turn */
  struct box_egress *egress;        /* what the egress gateway does for it; NULL = nothing */
  char *idempotency_key;            /* of the create that launches it; owned; NULL = none */
  char *ending;                     /* set when it must end as soon as it is launched; owned */
};

struct box_params {
  struct str id, team, ref, config, init, allow, deny, egress, rules, tokens;
  struct str mounts, mount_faults; /* lines "name TAB path"; what the gate found wrong with others */
  uint32_t timeout_s;
  unsigned flags;
  struct str idempotency_key, fingerprint; /* of the request; see box_create_once */
};

#endif
