/* desk.h - where gates' questions are answered. */
#ifndef CLOCHE_DESK_H
#define CLOCHE_DESK_H

#include "warden/box.h"

/* The late answer to a create (or another question about a box); nothing happens when the asking link is gone. */
void desk_answer_box(struct warden *w, struct ask ask, int status, const struct box *b, const struct err *err);
/* The same to a create, with the trace of the birth. */
void desk_answer_born(struct warden *w, struct ask ask, int status, const struct box *b, const struct err *err);

#endif
