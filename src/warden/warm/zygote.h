/* SPDX-License-Identifier: Apache-2.0 */
/* zygote.h - a loaded Python outside all boxes; its forks move into new boxes and are their first kernels, or nurseries
 * where more are wanted. Builds whose Python would load the same (zygote_key.h) have one between them. Only what a
 * ready-made template would load is loaded outside a box, unless the operator trusts all teams (private_zygotes): boxes
 * of other templates start Python inside. A template without Python has none. */
#ifndef CLOCHE_WARDEN_WARM_ZYGOTE_H
#define CLOCHE_WARDEN_WARM_ZYGOTE_H

#include "jail/jail.h"

struct build;
struct warden;

struct zygote;

/* The build's zygote, started when it has none yet and could have one. NULL: this template has no use for one. */
struct zygote *zygote_of(struct warden *w, struct build *b);
/* The same for a build that is still in the making; `name` is its template's, for the log. */
struct zygote *zygote_for(struct warden *w, struct str layers, struct str config, const char *name, const char *team);
/* The host user of the zygote that a box of this build may be entered by, whether that one runs or not; 0 = of none.
 * The loop's only. */
uint32_t zygote_owner(struct warden *w, struct build *b);
/* A box of this build was found again that belongs to the zygote of another warden: ours gets its user. Before any
 * other is given one. */
void zygote_reclaim(struct warden *w, struct build *b, uint32_t owner);
bool zygote_ready(const struct zygote *z);
bool zygote_useful(const struct zygote *z); /* it runs, or is started when it is needed */
/* Boxes of this build have Python, or may have, and none comes from outside: each loads its own. The loop's only. */
bool zygote_missing(struct warden *w, struct build *b);
bool zygote_hopeful(const struct zygote *z);  /* ready or still loading */
uint32_t zygote_user(const struct zygote *z); /* the host user whose forks enter boxes: spec.owner */

/* Sends a fork into the box; `sock` becomes its protocol socket. Any thread. A nursery says `ready` to the agent; else
 * the first kernel the agent asks for is the fork itself. */
int zygote_enter(struct zygote *z, const struct jail_spec *spec, const struct jail *j, bool nursery, int sock,
                 struct err *err);
/* Which may be stopped: each build says whether it still needs its own (the last call counts), then those that no build
 * needs are stopped. The next use starts them again. */
void zygote_spare(struct build *b, bool spare);
void zygotes_rest_spare(struct warden *w);
void zygote_used(struct build *b, int64_t when_us);            /* monotonic */
size_t zygotes_newer(struct warden *w, const struct build *b); /* how many were used after this build's */
void zygote_stop_all(struct warden *w);
/* Keys that are remembered, with or without a process; over zygote_keys_max those that nothing stands on go. */
size_t zygotes_known(struct warden *w);

#endif
