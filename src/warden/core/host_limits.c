/* SPDX-License-Identifier: Apache-2.0 */
/* host_limits.c - see host_limits.h. */
#include "warden/core/host_limits.h"

#include "warden/core/warden_state.h"

#include <fcntl.h>
#include <stdio.h>

#define INOTIFY "/proc/sys/fs/inotify/max_user_instances"

static int put(const char *path, struct str text)
{
  cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
  return fd < 0 ? -errno : fd_write_all(fd, text.p, text.n);
}

/* `kept` (may be NULL): where the store has the old value. */
static void raise_one(struct warden *w, const char *path, uint64_t least, const char *kept, const char *setting)
{
  cleanup_buf struct buf before = BUF_INIT(64);
  uint64_t n = 0;
  char text[24];
  if (!least || file_read(path, &before) || str_u64(str_trim(buf_str(&before)), &n) || n >= least)
    return;
  snprintf(text, sizeof(text), "%llu", (unsigned long long)least);
  if (kept)
    store_meta_put(w->store, kept, str_trim(buf_str(&before)), NULL);
  int r = put(path, str_of(text));
  if (r)
    log_warn("one team's boxes can use up %s for all: it is %llu and can't be raised to %s (setting %s): %s", path,
             (unsigned long long)n, text, setting, strerrordesc_np(-r));
}

void host_limits_raise(struct warden *w)
{
  const struct warden_config *c = w->config;
  raise_one(w, INOTIFY, c->inotify_instances, "inotify", "inotify_instances");
  raise_one(w, "/proc/sys/kernel/pid_max", c->host_processes, NULL, "host_processes");
  raise_one(w, "/proc/sys/kernel/threads-max", c->host_processes, NULL, "host_processes");
  raise_one(w, "/proc/sys/fs/file-max", c->host_open_files, NULL, "host_open_files");
  raise_one(w, "/proc/sys/fs/aio-max-nr", c->host_aio_requests, NULL, "host_aio_requests");
}

void host_limits_restore(struct warden *w)
{
  cleanup_buf struct buf before = BUF_INIT(64);
  if (store_meta_get(w->store, "inotify", &before) || before.n == 0)
    return;
  if (!put(INOTIFY, buf_str(&before)))
    store_meta_put(w->store, "inotify", STR(""), NULL);
}
