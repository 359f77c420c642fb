/* SPDX-License-Identifier: Apache-2.0 */
/* tag_history.h - which builds a tag was put on, and when. The catalogue holds where each tag is now; this is only read
 * when somebody asks. The newest TAG_HISTORY_MAX of a tag are kept; they go with their tag, build or template. */
#ifndef CLOCHE_WARDEN_DB_TAG_HISTORY_H
#define CLOCHE_WARDEN_DB_TAG_HISTORY_H

#include "warden/db/store.h"

#define TAG_HISTORY_MAX  100
#define TAG_HISTORY_TOLD 10000 /* of all tags of a template, the latest ones */

struct tag_event {
  struct str id, tag, build; /* borrowed for the call */
  int64_t when_us;
};

int tag_history_add(struct store *s, const char *template_id, const char *tag, const char *build, int64_t when_us,
                    struct err *err);
/* Newest first. */
void tag_history_each(struct store *s, const char *template_id, void (*fn)(const struct tag_event *e, void *arg),
                      void *arg);

#endif
