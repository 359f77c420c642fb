/* desk_inside.h - a question and the ways to answer it; for the desk's own files only. */
#ifndef CLOCHE_DESK_INSIDE_H
#define CLOCHE_DESK_INSIDE_H

#include "warden/rpc/reply.h"

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
void desk_finish_with(struct question *q, int fd); /* a descriptor goes along, -1 = none; it stays the caller's */
/* The template a question names, whatever its tag; answers the refusal itself. */
struct template *desk_template(struct question *q, bool *by_id);
void desk_put_template(struct question *q, struct template *t);
void desk_put_build(struct question *q, struct template *t, struct build *b); /* the same with this build */

struct ask desk_ask(const struct question *q);
struct box *desk_box(struct question *q); /* the one asked about; NULL: the refusal is answered */
bool desk_alive(struct warden *w, struct ask ask);
void desk_send(struct warden *w, struct ask ask, const struct buf *b); /* nothing happens when the asking link is gone */

/* desk_copy.c: snapshots and forks. False when the type is not one of them. */
bool desk_copy(struct question *q, enum wire_type type);

/* desk_catalog.c: teams, keys and templates. False when the type is not one of them. */
bool desk_catalog(struct question *q, enum wire_type type);
/* desk_build.c: builds of templates and their files. */
bool desk_build(struct question *q, enum wire_type type);
/* import.c: the answer comes when the image is unpacked. */
void desk_import(struct question *q);
/* desk_keeping.c: what `cloche template` asks for beyond that. */
bool desk_keeping(struct question *q, enum wire_type type);

#endif
