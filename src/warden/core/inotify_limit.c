/* SPDX-License-Identifier: Apache-2.0 */
/* inotify_limit.c - see inotify_limit.h. */
#include "warden/core/inotify_limit.h"

#include "warden/core/warden_state.h"

#include <fcntl.h>
#include <stdio.h>

#define INSTANCES "/proc/sys/fs/inotify/max_user_instances"

static int put(struct str text)
{
  cleanup_fd int fd = open(INSTANCES, O_WRONLY | O_CLOEXEC);
  return fd < 0 ? -errno : fd_write_all(fd, text.p, text.n);
}

void inotify_limit_raise(struct warden *w)
{
  cleanup_buf struct buf before = BUF_INIT(64);
  uint64_t n = 0;
  char text[24];
  if (file_read(INSTANCES, &before) || str_u64(str_trim(buf_str(&before)), &n) || n >= w->config->inotify_instances)
    return;
  snprintf(text, sizeof(text), "%u", w->config->inotify_instances);
  store_meta_put(w->store, "inotify", str_trim(buf_str(&before)), NULL);
  int r = put(str_of(text));
  if (r)
    log_warn("boxes share %llu inotify instances: %s: %s", (unsigned long long)n, INSTANCES, strerrordesc_np(-r));
}

void inotify_limit_restore(struct warden *w)
{
  cleanup_buf struct buf before = BUF_INIT(64);
  if (store_meta_get(w->store, "inotify", &before) || before.n == 0)
    return;
  if (!put(buf_str(&before)))
    store_meta_put(w->store, "inotify", STR(""), NULL);
}
