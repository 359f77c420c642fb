/* SPDX-License-Identifier: Apache-2.0 */
/* box.h - one box's life: born on a worker thread, watched through its pidfd, ended by order, by the clock or by
 * itself, found again after a restart. All functions run on the warden's loop. */
#ifndef CLOCHE_BOX_H
#define CLOCHE_BOX_H

#include "jail/jail.h"
#include "warden/box_usage.h"
#include "warden/reply.h"
#include "warden/warden.h"

/* What was asked while the box changed its state. */
struct copy;
struct pending_op {
  struct origin origin;
  struct copy *copy; /* to be copied for others (transition.h); the rest is for other wishes */
  bool pause;        /* else connect */
  bool cold;         /* without memory */
  bool waited;       /* for a transition that is over */
  bool joined;       /* which resumed the box */
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
  char name[64]; /* of its cgroup, directory and checkpoints on the host: random, never its id */
  char dir[512];
  uv_timer_t *expiry; /* its end time; made at first use */
  uv_poll_t *watch;
  struct nursery_listener *nursery_listener; /* or NULL, see nursery_request.h */
  struct usage usage;
  VEC(struct origin) waiting;         /* creates that wait for the launch */
  VEC(struct pending_op) pending_ops; /* what waits for a transition; see pause.h */
  int log_fd;                         /* its log ring, once it was seen; 0 = not yet */
  struct transition *transition;      /* under way, or NULL */
  uint64_t disk_bytes;                /* of its disk while it sleeps; 0 = not counted yet */
  bool packed;                        /* its checkpoint is compressed as far as it can be */
  bool counted;                       /* among its team's running boxes */
  bool missed;                        /* none was ready for it, see warm_pool.h */
  bool on_disk;                       /* no walls stand: it is paused on disk; set by box_set_on_disk */
  uint32_t owner;                     /* of its user namespace, once it was asked for; 0 = not yet */
  bool known, live;                   /* in the map of boxes, and so counted in warden.standing unless it is away */
  struct wire_trace trace;            /* of its launch */
  size_t token_index_at;              /* its place in the table of tokens, from 1; 0 = none; see token_index.h */
  uint8_t clients[BOX_CLIENTS][16];   /* who showed its token or its team's key, the latest first; zeros = none */
  bool snapped;                       /* a snapshot of it is under way or waits its turn */
  char *ending;                       /* set when it must end as soon as it is launched; owned */
};

struct box_params {
  struct str id, team, ref, config, init, allow, deny;
  uint32_t timeout_s;
  unsigned flags;
};

/* Begins a launch; the answer goes to `ask` when the box is ready. -EINVAL, -ENOENT, -ESTALE, -EAGAIN (limit), -EDQUOT
 * (too fast: *retry_s). */
int box_create(struct warden *w, const struct box_params *order, struct origin origin, unsigned *retry_s,
               struct err *err);
/* The parts of it, for boxes made in other ways: a box without a row yet; known and counted from now on; the end of its
 * launch, which frees it when that failed (birth->err says why). */
struct launch;
struct box *box_new(struct warden *w, const char *host_name); /* NULL: a new random name */
void box_register(struct box *b);
int box_launched(struct launch *launch);
void box_free(struct box *b);
struct box *box_find(struct warden *w, struct str id, struct str team); /* team empty: any */
void box_end(struct box *b, const char *cause); /* frees b, at the latest when its transition is over */
void box_destroy(struct box *b);                /* the last of box_end: clears the remains and frees b */
void box_watch(struct box *b);                  /* its end is noticed */
void box_unwatch(struct box *b);
void box_set_on_disk(struct box *b, bool on_disk);
/* One more box with walls? -EAGAIN at the server's limit. */
int box_check_limit(const struct warden *w, struct err *err);
void box_broadcast_hold(struct box *b);  /* gates let nobody new in without asking */
void box_broadcast_ended(struct box *b); /* gates cut its streams and forget its routes */
void box_set_timer(struct box *b);       /* starts the timer of its end time */
void box_stop_timer(struct box *b);
int box_configure(struct box *b, struct str config, unsigned flags, struct str allow, struct str deny, struct err *err);
int box_set_end(struct box *b, int64_t end_wall_us, struct err *err);
int box_dial(struct box *b, unsigned port, struct err *err);
/* At start: adopt what lives, record what died, clear what nobody owns. */
int box_recover(struct warden *w, struct err *err);
void box_sample_all(struct warden *w);

#endif
