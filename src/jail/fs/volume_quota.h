/* SPDX-License-Identifier: Apache-2.0 */
/* volume_quota.h - the limits of a volume that is a directory, where its filesystem has project quotas switched on.
 *
 * Each volume is a project of its own, whose number is made of its id; what is made in the tree inherits it, and only
 * the host's root can change that. The kernel then counts and refuses by itself (EDQUOT, ENOSPC), and statfs of the
 * tree tells the limit. Processes with CAP_SYS_RESOURCE on the host are not bound by it; none that writes for tenants
 * has it. `tree` is a descriptor of the volume's root. All may block. */
#ifndef CLOCHE_JAIL_FS_VOLUME_QUOTA_H
#define CLOCHE_JAIL_FS_VOLUME_QUOTA_H

#include "jail/fs/volume_backing.h"
#include <linux/fs.h>
#include <sys/quota.h>

/* True: the number that the id makes counts files already. Ids are not for tenants to choose, but who makes many
 * volumes meets another's number some day, and would share its limit. */
bool volume_quota_taken(int tree, const char *id);
int volume_quota_start(int tree, const char *id); /* an empty tree becomes a project; -errno: this filesystem can't */
int volume_quota_set(int tree, const char *id, const struct volume_limits *l);
/* True: the filesystem counts and limits, and *out says what. */
bool volume_quota_read(int tree, const char *id, struct volume_usage *out);

/* What the kernel is asked. Pure, for tests. */
uint32_t volume_quota_project(const char *id); /* never 0, which is what all other files have */
void volume_quota_inherit(struct fsxattr *attr, const char *id);
struct dqblk volume_quota_limits(const struct volume_limits *l);

#endif
