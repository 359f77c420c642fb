/* SPDX-License-Identifier: Apache-2.0 */
/* layer_lease.h - layers in use, and layers that go. Builds take layers on threads of their own while the loop clears
 * what nothing needs; a lease and a removal exclude each other, so a layer that was leased is there, and its time says
 * that it is in use. */
#ifndef CLOCHE_WARDEN_BUILD_LAYER_LEASE_H
#define CLOCHE_WARDEN_BUILD_LAYER_LEASE_H

#include "base/base.h"

/* True: <data>/layers/<key> is there, and is not removed while a build that began before this call is at work. Any
 * thread. */
bool layer_lease(const char *dir);
bool layer_lease_tree(const char *fs); /* the same by its files, <data>/layers/<key>/fs; false when it has none */
/* Renames a layer to `gone` unless it was leased at `since` (wall seconds) or later. True: it went. */
bool layer_remove_unleased(const char *dir, const char *gone, int64_t since);

#endif
