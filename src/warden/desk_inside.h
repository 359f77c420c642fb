/* desk_inside.h - a question and the ways to answer it; for desk.c and desk_catalog.c only. */
#ifndef CLOCHE_DESK_INSIDE_H
#define CLOCHE_DESK_INSIDE_H

#include "warden/desk.h"

struct question {
  struct warden *warden;
  struct link *link;
  struct str packet;
  uint64_t id;
  struct str team;
  struct buf *out; /* the answer being built */
};

void desk_begin(struct question *q, enum wire_type type, int status);
void desk_finish(struct question *q);
void desk_refuse(struct question *q, int status, const char *message);
void desk_refuse_err(struct question *q, const struct err *err);
void desk_agree(struct question *q);

/* desk_catalog.c: teams, keys and templates. False when the type is not one of them. */
bool desk_catalog(struct question *q, enum wire_type type);

#endif
