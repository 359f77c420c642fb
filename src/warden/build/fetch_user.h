/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_user.h - the user of a team's fetches: one of `image_uids` from `image_uid` on, nobody else's from the first to
 * the last of those under way. A fetch that was taken over then has nothing in common with those of other teams; those
 * of its own team share the blobs that they fetched. Safe from threads. */
#ifndef CLOCHE_WARDEN_BUILD_FETCH_USER_H
#define CLOCHE_WARDEN_BUILD_FETCH_USER_H

#include "warden/core/warden_config.h"

#define FETCH_USERS_MAX 1024

/* Also hands the directory `blobs` in `dir` over to that user, with what is in it; links are not followed. -EBUSY where
 * all users are taken. */
int fetch_user_take(const struct source_rules *rules, const char *team, int dir, uint32_t *uid, struct err *err);
void fetch_user_release(const struct source_rules *rules, uint32_t uid); /* 0: nothing was taken */

#endif
