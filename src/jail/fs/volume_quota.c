/* SPDX-License-Identifier: Apache-2.0 */
/* volume_quota.c - see volume_quota.h. */
#include "jail/fs/volume_quota.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>

#define QUOTA_BLOCK 1024
#ifndef PRJQUOTA
#define PRJQUOTA 2
#endif

uint32_t volume_quota_project(const char *id)
{
  uint32_t sum = crc32c(0, id, strlen(id));
  return sum ? sum : 1;
}

void volume_quota_inherit(struct fsxattr *attr, const char *id)
{
  attr->fsx_projid = volume_quota_project(id);
  attr->fsx_xflags |= FS_XFLAG_PROJINHERIT;
}

struct dqblk volume_quota_limits(const struct volume_limits *l)
{
  return (struct dqblk){.dqb_bhardlimit = l->bytes / QUOTA_BLOCK + (l->bytes % QUOTA_BLOCK != 0),
                        .dqb_ihardlimit = l->inodes,
                        .dqb_valid = QIF_LIMITS};
}

static int quota_call(int fd, int command, const char *id, struct dqblk *q)
{
#ifdef SYS_quotactl_fd
  return syscall(SYS_quotactl_fd, fd, (int)QCMD((unsigned)command, PRJQUOTA), volume_quota_project(id), q) ? -errno : 0;
#else
  return -ENOSYS;
#endif
}

bool volume_quota_taken(int tree, const char *id)
{
  struct dqblk q = {0};
  return !quota_call(tree, Q_GETQUOTA, id, &q) && q.dqb_curinodes > 0;
}

int volume_quota_start(int tree, const char *id)
{
  struct fsxattr attr;
  if (ioctl(tree, FS_IOC_FSGETXATTR, &attr))
    return -errno;
  volume_quota_inherit(&attr, id);
  return ioctl(tree, FS_IOC_FSSETXATTR, &attr) ? -errno : 0;
}

int volume_quota_set(int tree, const char *id, const struct volume_limits *l)
{
  struct dqblk q = volume_quota_limits(l);
  return quota_call(tree, Q_SETQUOTA, id, &q);
}

bool volume_quota_read(int tree, const char *id, struct volume_usage *out)
{
  struct fsxattr attr;
  struct dqblk q = {0};
  if (ioctl(tree, FS_IOC_FSGETXATTR, &attr) || attr.fsx_projid != volume_quota_project(id) ||
      quota_call(tree, Q_GETQUOTA, id, &q) || (!q.dqb_bhardlimit && !q.dqb_ihardlimit))
    return false;
  *out = (struct volume_usage){.bytes = q.dqb_curspace,
                               .inodes = q.dqb_curinodes,
                               .bytes_max = q.dqb_bhardlimit * QUOTA_BLOCK,
                               .inodes_max = q.dqb_ihardlimit,
                               .whole = true};
  return true;
}
