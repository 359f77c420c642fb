/* SPDX-License-Identifier: Apache-2.0 */
/* log_entry.h - one line of a box's log ring, as the box wrote it, and the shapes it is told in. Pure: bytes in, JSON
 * out. */
#ifndef CLOCHE_LOG_ENTRY_H
#define CLOCHE_LOG_ENTRY_H

#include "base/base.h"

#define LOG_LINE_MOST ((size_t)32 << 10) /* an agent's longest line, 4096 bytes escaped, is shorter */

struct log_entry {
  int64_t at_us;
  const char *level;
  struct str message;
  const struct json *line; /* in the arena */
};

int log_level_of(struct str word); /* 0 debug to 3 error; -1: none of them */
/* False when the line is no entry. */
bool log_entry_read(struct arena *a, struct str text, struct log_entry *e);
void log_entry_put(struct jw *w, const struct log_entry *e); /* the second generation's object */
void log_entry_put_line(struct jw *w,
                        const struct log_entry *e); /* the first generation's: its line is the text of a JSON object */

#endif
