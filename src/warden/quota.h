/* account.h - what a team has at the moment: running boxes, and how fast it may make new ones. Limits come from the
 * team's row, and where that says nothing from the server's settings. Nothing here survives a restart, and nothing
 * must: running boxes are counted again as they are found. */
#ifndef CLOCHE_ACCOUNT_H
#define CLOCHE_ACCOUNT_H

#include "warden/box.h"

/* May the team start one more? -EAGAIN: its running boxes are at the limit; -EDQUOT: too fast, *retry_s says when. */
int account_admit(struct warden *w, struct str team, bool create, unsigned *retry_s, struct err *err);
void account_count(struct box *b, bool running); /* idempotent */
size_t account_running(struct warden *w, struct str team);
unsigned account_boxes_max(struct warden *w, struct str team);   /* running at once; 0 = no limit */
unsigned account_timeout_max(struct warden *w, struct str team); /* seconds of one run */
/* The template's build against the team's largest box. */
int account_fits(struct warden *w, struct str team, const struct build *b, struct err *err);
void accounts_free(struct warden *w);

#endif
