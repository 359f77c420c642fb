/* SPDX-License-Identifier: Apache-2.0 */
/* download_cache.h - what package managers fetched in a team's builds, kept for its next builds.
 *
 * One disk per team, of a fixed size, that the boxes of its builds see at JAIL_CACHE. Whoever writes a build of a team
 * could write anything into its templates anyway, so within a team nothing needs to be told apart; between teams
 * nothing is shared, because what one put there under a package's name another would install. Only a cache: it starts
 * empty after a reboot of the machine, since its filesystem keeps no journal. */
#ifndef CLOCHE_WARDEN_BUILD_DOWNLOAD_CACHE_H
#define CLOCHE_WARDEN_BUILD_DOWNLOAD_CACHE_H

struct warden;

/* A descriptor for jail_spec.cache, the warden's own to keep; 0 where there is none (switched off, or this kernel
 * can't). Any thread. */
int download_cache_open(struct warden *w, const char *team);

#endif
