/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - text for terminals: columns, durations, and what others wrote without what could control a terminal. */
#ifndef CLOCHE_CLI_TABLE_H
#define CLOCHE_CLI_TABLE_H

#include "base/base.h"

enum { CLEAN_LINES = 1, CLEAN_COLOURS = 2 };

/* Appends text of unknown origin: control characters (C0, DEL, C1), what is not UTF-8 and marks that turn the writing
 * direction become '?'. CLEAN_LINES keeps tabs and line ends; CLEAN_COLOURS leaves colour sequences out silently. */
void text_clean(struct buf *out, struct str text, int flags);
/* "12s", "3m", "5h", "2d"; "-" below 0. */
void duration_text(struct buf *out, int64_t seconds);

/* Rows of cells in columns as wide as their widest cell. Cells are cleaned and copied. */
struct table {
  size_t columns;
  VEC(char *) cells;
};
void table_add(struct table *t, const char *cell);
void table_print(const struct table *t, struct buf *out);
void table_free(struct table *t);

#endif
