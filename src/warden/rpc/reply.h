/* desk.h - where gates' questions are answered. */
#ifndef CLOCHE_DESK_H
#define CLOCHE_DESK_H

#include "warden/box.h"

/* The late answer to a create (or another question about a box); nothing happens when the asking link is gone. */
void desk_answer_box(struct warden *w, struct ask ask, int status, const struct box *b, const struct err *err);
/* The same to a create, with the trace of the birth. */
void desk_answer_born(struct warden *w, struct ask ask, int status, const struct box *b, const struct err *err);

/* Answers of more than one part, and others about what was made of a box. */
struct template;
/* files: it has no memory of the source, only its files */
void desk_answer_item(struct warden *w, struct ask ask, int status, const struct box *b, bool files, const struct err *err);
void desk_answer_end(struct warden *w, struct ask ask, int status, const struct err *err); /* err may be NULL when status is 0 */
void desk_answer_snapshot(struct warden *w, struct ask ask, const struct template *t, const char *tag, bool files);

#endif
