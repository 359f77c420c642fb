/* SPDX-License-Identifier: Apache-2.0 */
/* box_log.c - see box_log.h. The ring is reached through the first process's root, with links and tricks refused:
 * nothing but a plain file inside the box can be opened this way. */
#include "warden/core/box_log.h"

#include "warden/core/box_state.h"
#include "warden/core/telemetry.h"
#include "warden/core/warden_state.h"

#include "wire/logring.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <linux/magic.h>

int boxlog_open(const struct jail *j)
{
  char path[64];
  struct stat st;
  snprintf(path, sizeof(path), "/proc/%d/root", j->init.pid);
  cleanup_fd int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  uint64_t start;
  if (root < 0 || proc_start_time(j->init.pid, &start) || start != j->init.start)
    return -ENOENT;
  cleanup_fd int fd = path_open_beneath(root, LOGRING_PATH, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  struct statfs on;
  if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || fstatfs(fd, &on) ||
      on.f_type != TMPFS_MAGIC) /* a disk's could be waited for */
    return -ENOENT;
  return steal_fd(&fd);
}

void boxlog_look(struct box *b)
{
  if (b->log_fd <= 0 && b->jail.pidfd >= 0) {
    int fd = boxlog_open(&b->jail);
    b->log_fd = fd > 0 ? fd : 0;
  }
  if (b->log_fd > 0)
    telemetry_log_begin(b);
}

void boxlog_keep(struct box *b)
{
  boxlog_look(b);
  if (b->log_fd <= 0)
    return;
  cleanup_buf struct buf lines = BUF_INIT(BOXLOG_KEEP);
  struct err err = ERR_NONE;
  if (!logring_read(b->log_fd, BOXLOG_KEEP, &lines) && lines.n &&
      store_log_put(b->warden->store, b->row.id, b->row.team, clock_wall_us(), buf_str(&lines), &err))
    log_warn("box %s: log not saved: %s", b->row.id, err.msg);
  telemetry_log_end(b);
  close(b->log_fd);
  b->log_fd = 0;
}

int boxlog_kept(struct warden *w, struct str id, struct str team)
{
  cleanup_buf struct buf ring = BUF_INIT(BOXLOG_KEEP + LOGRING_HEAD);
  char head[LOGRING_HEAD] = {0};
  buf_add(&ring, head, sizeof(head));
  int r = store_log_get(w->store, id, team, &ring);
  if (r)
    return r;
  struct logring_head h = {.magic = LOGRING_MAGIC, .size = ring.n - LOGRING_HEAD, .written = ring.n - LOGRING_HEAD};
  memcpy(ring.p, &h, sizeof(h));
  cleanup_fd int fd = memfd_create("cloche-log", MFD_CLOEXEC);
  r = fd < 0 ? -errno : fd_write_all(fd, ring.p, ring.n);
  return r ? r : steal_fd(&fd);
}
