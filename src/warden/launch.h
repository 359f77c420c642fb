/* birth.h - making boxes: walls, boot packet, the agent's word that it is ready. On a worker thread, or ahead for the pool,
 * or in a moment from a box that the pool has ready. */
#ifndef CLOCHE_BIRTH_H
#define CLOCHE_BIRTH_H

#include "warden/box.h"
#include "warden/checkpoint_queue.h"

struct zygote;
struct shelf;
struct parked;

struct birth {
  uv_work_t work;
  struct turn turn; /* of a restore */
  struct warden *warden;
  struct box *box;     /* NULL for the pool; not touched by the worker but for what was copied below */
  struct shelf *shelf; /* whose it will be, for the pool */
  void (*done)(struct birth *birth);
  struct jail_blank *blank; /* walls that stand already, or NULL; owned until the worker has it */
  struct zygote *zygote;    /* to warm it with; NULL: it warms itself */
  char name[64], dir[512];
  unsigned slot;
  bool again; /* a cold start of a box that has files: whatever fails, they stay */
  struct jail_spec spec;
  struct jail_net net; /* when spec.net is set */
  struct arena arena;
  struct buf boot; /* the packet for the agent */
  int boot_fd;     /* where the agent listens and answers; the pool's to keep */
  uv_poll_t *poll;
  uv_timer_t *timer;
  struct jail jail;
  int64_t told_us, ready_us;            /* see struct wire_trace */
  char image[64], was[80], runtime[80]; /* of a restore */
  bool fleeting;                        /* the same: its image was made just now */
  struct row_box row;                   /* the same: a copy, its texts in the arena */
  void *arg;                            /* the owner's */
  int result;
  struct err err;
};

#define BIRTH_READY_MS 20000 /* longest wait for the agent's word */

/* The birth is freed after done returns. */
/* Told to the parked p; else born, in the walls of `blank` (taken) where there is one. */
void birth_start(struct box *b, struct parked *p, struct jail_blank *blank, const struct box_order *o, void (*done)(struct birth *));
/* From the memory of another box, whose agent knows the secret `was`; the agent is told who it is now. */
void birth_restore(struct box *b, const char *image, const char *was, void (*done)(struct birth *), void *arg);
/* Of a row that is filled already, from nothing but its build. */
void birth_plain(struct box *b, void (*done)(struct birth *), void *arg);
/* From the files a sleeping box has. */
void birth_again(struct box *b, void (*done)(struct birth *));
void birth_ahead(struct warden *w, struct build *build, struct shelf *s, unsigned slot, void (*done)(struct birth *));
/* The same of a build that holds memory: restored, and still frozen. birth_wake tells it who it is and lets it go. */
void birth_restore_ahead(struct warden *w, struct build *build, struct shelf *s, unsigned slot, void (*done)(struct birth *));
void birth_wake(struct box *b, const struct parked *p, void (*done)(struct birth *));

#endif
