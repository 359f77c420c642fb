/* SPDX-License-Identifier: Apache-2.0 */
/* entry.h - what the file system says about a path, as an EntryInfo. */
#ifndef CLOCHE_AGENT_ENVD_ENTRY_H
#define CLOCHE_AGENT_ENVD_ENTRY_H

#include "agent/envd/messages.h"
#include "agent/user.h"

#define PERMISSIONS_TEXT 20

/* One letter per attribute set (d L D p S u g c t, or '-'), then nine of rwx. */
void entry_permissions(unsigned mode, char out[PERMISSIONS_TEXT]);

/* lstat of `path`. 0 or -errno (-ENOMEM when the arena is full). */
int entry_fill(const char *path, struct userdb *db, struct arena *a, struct msg_entry *out);

/* Everything below `path` down to `depth` levels, depth first, names in byte order. Paths keep the prefix given. Things
 * that vanish meanwhile are skipped. 0 or -errno. */
int entry_walk(const char *path, uint32_t depth, struct userdb *db, struct arena *a, struct rpc_list *out);

#endif
