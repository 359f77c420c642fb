/* SPDX-License-Identifier: Apache-2.0 */
/* list_query.h - what a listing is asked for, as text: metadata filters and the keys of pages. Pure. */
#ifndef CLOCHE_GATE_LIST_QUERY_H
#define CLOCHE_GATE_LIST_QUERY_H

#include "base/base.h"

struct pair {
  struct str key, value;
};

/* The value of the query `metadata`, its own layer of escapes off: pairs still encoded twice, as all clients send it.
 * Returns how many, or -EINVAL: not key=value joined by '&', a broken escape, or more than `most`. */
int metadata_read(struct arena *a, struct str text, struct pair *out, size_t most);

/* The place of a row: newest first, equal times by id upwards. Ascending order is the exact reverse. */
struct page_key {
  int64_t us;
  struct str id;
};
int page_key_order(const struct page_key *a, const struct page_key *b); /* as qsort wants it */
/* "<microseconds>__<id>", with "__asc" behind it for ascending order; -EINVAL when it is none or of the other order. */
int page_key_read(struct str plain, bool ascending, struct page_key *out);
void page_key_put(struct buf *out, const struct page_key *k, bool ascending);

#endif
