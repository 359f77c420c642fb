/* SPDX-License-Identifier: Apache-2.0 */
/* package_cache.h - points package managers of a build to the downloads of earlier builds (JAIL_CACHE,
 * src/warden/build/download_cache.h). */
#ifndef CLOCHE_AGENT_BUILD_PACKAGE_CACHE_H
#define CLOCHE_AGENT_BUILD_PACKAGE_CACHE_H

#include "agent/env.h"
#include "agent/user.h"

/* Adds the variables for this user; nothing where the box has no cache. */
void package_cache_env(const struct user *u, struct env *env);
/* What apt has fetched meanwhile goes to the others. */
void package_cache_harvest(void);

#endif
