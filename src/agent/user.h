/* SPDX-License-Identifier: Apache-2.0 */
/* user.h - accounts of the box, read from /etc/passwd and /etc/group at the moment of asking.
 *
 * The agent is linked statically, so there is no NSS; and users may be added while it runs, so nothing is cached
 * between requests. A request that asks often (a directory listing) loads a userdb once. */
#ifndef CLOCHE_AGENT_USER_H
#define CLOCHE_AGENT_USER_H

#include "base/base.h"
#include <limits.h>
#include <sys/types.h>

#define USER_GROUPS_MAX 64

#define USER_NAME_SIZE  256

struct user {
  char name[USER_NAME_SIZE];
  char home[PATH_MAX];
  char shell[USER_NAME_SIZE];
  uid_t uid;
  gid_t gid;
  gid_t groups[USER_GROUPS_MAX]; /* primary first, then every group that lists the name */
  size_t ngroups;
};

/* 0, -ENOENT when there is no such name, or another errno when the file can't be read just now. */
int user_find(struct str name, struct user *out);

/* Both files as they are now, and the last answers: neighbours in a directory mostly have one owner. */
struct userdb {
  struct buf passwd, group;
  struct str last_user, last_group;
  uid_t last_uid;
  gid_t last_gid;
  bool has_user, has_group;
};
int userdb_load(struct userdb *db); /* 0 or -errno; usable (and empty) in any case */
void userdb_free(struct userdb *db);
#define cleanup_userdb __attribute__((cleanup(userdb_free)))
int userdb_user(const struct userdb *db, struct str name, struct user *out);
struct str userdb_user_name(struct userdb *db, uid_t uid); /* p is NULL when unknown */
struct str userdb_group_name(struct userdb *db, gid_t gid);

#endif
