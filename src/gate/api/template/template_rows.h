/* SPDX-License-Identifier: Apache-2.0 */
/* template_rows.h - a listing of what a team has of templates or snapshots, or a template of builds: the warden's items
 * are gathered, ordered (newest first) and told as a JSON array, a page of them where pages are asked for. */
#ifndef CLOCHE_GATE_TEMPLATE_ROWS_H
#define CLOCHE_GATE_TEMPLATE_ROWS_H

#include "gate/api/api.h"
#include "gate/api/list_query.h"

struct rows {
  bool (*wanted)(const struct rows *l, struct str row); /* NULL: all */
  void (*put)(struct req *r, struct jw *w, struct str row);
  VEC(struct str) found;                           /* packets, in the request's arena */
  bool (*better)(struct str have, struct str row); /* of one template only the better row is told; NULL: all are */
  bool by_id;                                      /* ordered by template id instead of by age */
  bool paged;
  uint64_t limit;
  struct page_key cursor; /* rows behind this one; no id = all */
};

/* Reads `limit` and `nextToken`; false when it has answered that they make no sense. */
bool rows_page(struct req *r, struct rows *l);
/* Asks the warden for the team's items of this kind and answers the request. `l` lives as long as that, in its arena.
 */
void rows_tell(struct req *r, struct rows *l, enum wire_type type);
/* The parts of it, for a listing inside of another answer: r->state is `l`, each item is given to rows_found, and the
 * array is put with the token of the next page, if there is one. */
void rows_begin(struct req *r, struct rows *l);
void rows_found(const struct warden_reply *reply, void *arg);
void rows_told(const struct warden_reply *reply, void *arg); /* answers with the array */
void rows_put(struct req *r, struct jw *w, struct rows *l, struct buf *token);

#endif
