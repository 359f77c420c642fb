/* SPDX-License-Identifier: Apache-2.0 */
/* box.h - one box's life: known, watched through its pidfd, ended by request, by its timeout or by itself. All
 * functions run on the warden's loop. New boxes are box_create.h's, those found after a restart box_recover.h's. */
#ifndef CLOCHE_WARDEN_BOX_H
#define CLOCHE_WARDEN_BOX_H

#include "warden/core/box_state.h"

/* A box without a row yet; host_name NULL: a new random one. */
struct box *box_new(struct warden *w, const char *host_name); /* NULL: a new random name */
void box_add(struct box *b);                                  /* requests find it from now on */
void box_register(struct box *b);   /* known and counted from now on, its launch is under way */
void box_unregister(struct box *b); /* no request finds it any more */
void box_free(struct box *b);
struct box *box_find(struct warden *w, struct str id, struct str team); /* team empty: any */
struct box *box_next(struct warden *w, size_t *i); /* all that are known, i from 0; NULL: no more */
size_t box_count(const struct warden *w);
void box_end(struct box *b, const char *cause); /* frees b, at the latest when its transition is over */
void box_destroy(struct box *b);                /* the last of box_end: reclaims everything and frees b */
/* An id is no secret, the name of a team's key is the team's: who shows no key learns only that it was a request. */
#define CAUSE_BY_KEY "killed: by API key '"
const char *box_cause_for_anyone(const char *cause);
void box_watch(struct box *b); /* its end is noticed */
void box_unwatch(struct box *b);
void box_set_on_disk(struct box *b, bool on_disk);
/* One more box with a jail? -EAGAIN at the server's limit. */
int box_check_limit(const struct warden *w, struct err *err);
void box_broadcast_hold(struct box *b);  /* gates let nobody new in without asking */
void box_broadcast_ended(struct box *b); /* gates cut its streams and forget its routes */
void box_set_timer(struct box *b);       /* starts the timer of its end time */
void box_stop_timer(struct box *b);
/* New settings, with what box.egress is by now; the firewall has them. `flags` say whether it has a link. */
int box_configure(struct box *b, struct str config, unsigned flags, struct str allow, struct str deny, struct err *err);
int box_set_end(struct box *b, int64_t end_wall_us, struct err *err);
int box_dial(struct box *b, unsigned port, struct err *err);

#endif
