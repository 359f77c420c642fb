/* box.h - one box's life: born on a worker thread, watched through its pidfd, ended by order, by the clock or by itself,
 * found again after a restart. All functions run on the warden's loop. */
#ifndef CLOCHE_BOX_H
#define CLOCHE_BOX_H

#include "jail/jail.h"
#include "warden/box_usage.h"
#include "warden/warden.h"

/* Who asked, so that an answer can be given later; the link may be gone by then. */
struct ask {
  struct link *link; /* NULL: nobody */
  uint64_t serial;   /* of the link, whose address may be another's by now */
  uint64_t id;
  bool resumed; /* told in the answer: this question woke the box */
  bool again;   /* asked before, of a warden that died since */
};

/* What was asked while the box changed its state. */
struct copy;
struct wish {
  struct ask ask;
  struct copy *copy; /* to be copied for others (passage.h); the rest is for other wishes */
  bool pause;        /* else connect */
  bool cold;         /* without memory */
  enum connect_mode mode;
  uint32_t timeout_s;
  int auto_pause; /* from now on: 1 yes, 0 no, -1 as before */
};

struct passage;
struct bell;

struct box {
  struct warden *warden;
  struct row_box row;
  struct template *template;
  struct build *build;
  struct jail jail;
  char name[64]; /* of its walls on the host (cgroup, directory): its id, or another one where it was made ahead */
  char dir[512];
  struct alarm alarm;
  uv_poll_t *watch;
  struct bell *bell; /* or NULL, see bell.h */
  struct usage usage;
  VEC(struct ask) waiting; /* creates that wait for the birth */
  VEC(struct wish) wishes; /* what waits for a passage; see pause.h */
  int log_fd;              /* its log ring, once it was seen; 0 = not yet */
  struct passage *passage; /* under way, or NULL */
  bool packed;             /* its image has been made as small as it can be */
  bool counted;            /* among its team's running boxes */
  bool missed;             /* none was ready for it, see shelf.h */
  bool away;               /* no walls stand: it sleeps on disk; set by box_away */
  bool known, standing;    /* in the map of boxes, and so counted in warden.standing unless it is away */
  struct wire_trace trace; /* of its birth */
  bool snapped;            /* a snapshot of it is under way or waits its turn */
  char *ending;            /* set when it must end as soon as it is born; owned */
};

struct box_order {
  struct str id, team, ref, config, init, allow, deny;
  uint32_t timeout_s;
  unsigned flags;
};

/* Begins a birth; the answer goes to `ask` when the box is ready. -EINVAL, -ENOENT, -ESTALE, -EAGAIN (limit), -EDQUOT
 * (too fast: *retry_s). */
int box_create(struct warden *w, const struct box_order *order, struct ask ask, unsigned *retry_s, struct err *err);
/* The parts of it, for boxes made in other ways: a box without a row yet; known and counted from now on; the end of its birth,
 * which frees it when that failed (birth->err says why). */
struct birth;
struct box *box_new(struct warden *w, const char *walls);
void box_begin(struct box *b);
int box_born(struct birth *birth);
void box_free(struct box *b);
struct box *box_find(struct warden *w, struct str id, struct str team); /* team empty: any */
void box_end(struct box *b, const char *cause);                         /* frees b, at the latest when its passage is over */
void box_bury(struct box *b);                                           /* the last of box_end: clears the remains and frees b */
void box_watch(struct box *b);                                          /* its end is noticed */
void box_unwatch(struct box *b);
void box_away(struct box *b, bool away);
/* One more box with walls? -EAGAIN at the server's limit. */
int box_room(const struct warden *w, struct err *err);
void box_hold(struct box *b);     /* gates let nobody new in without asking */
void box_run_over(struct box *b); /* gates cut its streams and forget its routes */
void box_arm(struct box *b);      /* its end time is set on the clock */
int box_configure(struct box *b, struct str config, unsigned flags, struct str allow, struct str deny, struct err *err);
int box_set_end(struct box *b, int64_t end_wall_us, struct err *err);
int box_door(struct box *b, unsigned port, struct err *err);
void box_record(struct buf *packet, const struct box *b); /* the fields of a box answer */

/* At start: adopt what lives, record what died, clear what nobody owns. */
int box_recover(struct warden *w, struct err *err);
void box_sample_all(struct warden *w);

#endif
