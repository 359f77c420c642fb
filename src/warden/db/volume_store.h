/* SPDX-License-Identifier: Apache-2.0 */
/* volume_store.h - volumes of teams: which there are. What mounts them is in the rows of boxes. The files are
 * elsewhere; a row is written before they are made and goes after they are gone, so that a crash leaves no files that
 * nobody knows of. */
#ifndef CLOCHE_WARDEN_DB_VOLUME_STORE_H
#define CLOCHE_WARDEN_DB_VOLUME_STORE_H

#include "warden/db/store.h"

enum volume_state { VOLUME_CREATING, VOLUME_READY, VOLUME_DELETING };

struct row_volume {
  char id[UUID_SIZE], team[UUID_SIZE], name[VOLUME_NAME_SIZE];
  enum volume_state state;
  int64_t created_us;
  bool attached; /* its files are another server's, with whom the directory of volumes is shared */
};

/* A new one, or a change of its state. -EEXIST: the team has another one of this name that is not being deleted. */
int store_volume_put(struct store *s, const struct row_volume *r, struct err *err);
int store_volume_delete(struct store *s, const char *id, struct err *err); /* the row */
/* -ENOENT: none. By id in any state, by name only one that is ready. */
int store_volume_get(struct store *s, struct str id, struct row_volume *out);
int store_volume_by_name(struct store *s, struct str team, struct str name, struct row_volume *out);
/* team NULL: of all, in any state; else the ready ones of this team. Oldest first. */
int store_volumes(struct store *s, const char *team, int (*fn)(const struct row_volume *, void *), void *arg);
size_t store_volume_count(struct store *s, const char *team); /* with those whose files are not gone yet */

#endif
