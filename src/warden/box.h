/* box.h - one box's life: born on a worker thread, watched through its pidfd, ended by order, by the clock or by itself,
 * found again after a restart. All functions run on the warden's loop. */
#ifndef CLOCHE_BOX_H
#define CLOCHE_BOX_H

#include "jail/jail.h"
#include "warden/usage.h"
#include "warden/warden.h"

/* Who asked, so that an answer can be given later; the link may be gone by then. */
struct ask {
  struct link *link;
  uint64_t id;
};

struct box {
  struct warden *warden;
  struct row_box row;
  struct template *template;
  struct build *build;
  struct jail jail;
  char dir[512];
  struct alarm alarm;
  uv_poll_t *watch;
  struct usage usage;
  VEC(struct ask) waiting; /* creates that wait for the birth */
  char *ending;            /* set when it must end as soon as it is born; owned */
};

struct box_order {
  struct str id, team, ref, config, init;
  uint32_t timeout_s;
  unsigned flags;
};

/* Begins a birth; the answer goes to `ask` when the box is ready. -EINVAL, -ENOENT, -ESTALE, -EAGAIN (limit). */
int box_create(struct warden *w, const struct box_order *order, struct ask ask, struct err *err);
struct box *box_find(struct warden *w, struct str id, struct str team); /* team empty: any */
void box_end(struct box *b, const char *cause);                         /* frees b */
int box_set_end(struct box *b, int64_t end_wall_us, struct err *err);
int box_door(struct box *b, unsigned port, struct err *err);
void box_record(struct buf *packet, const struct box *b); /* the fields of a box answer */

/* At start: adopt what lives, record what died, clear what nobody owns. */
int box_recover(struct warden *w, struct err *err);
void box_sample_all(struct warden *w);

#endif
