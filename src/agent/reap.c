/* SPDX-License-Identifier: Apache-2.0 */
/* reap.c - waits for every child of pid 1, and calls those who asked. */
#include "agent/reap.h"
#include "base/base.h"
#include <sys/wait.h>

struct watcher {
  pid_t pid;
  reap_fn fn;
  void *arg;
};

static VEC(struct watcher) watchers;

static ptrdiff_t watcher_index(pid_t pid)
{
  for (size_t i = 0; i < watchers.n; i++)
    if (watchers.p[i].pid == pid)
      return (ptrdiff_t)i;
  return -1;
}

void reap_watch(pid_t pid, reap_fn fn, void *arg)
{
  struct watcher w = {pid, fn, arg};
  vec_push(&watchers, w);
}

void reap_forget(pid_t pid)
{
  ptrdiff_t i = watcher_index(pid);
  if (i >= 0)
    vec_remove_swap(&watchers, (size_t)i);
}

void reap_now(void)
{
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    ptrdiff_t i = watcher_index(pid);
    if (i < 0)
      continue;
    struct watcher w = watchers.p[i];
    vec_remove_swap(&watchers, (size_t)i);
    w.fn(pid, status, w.arg);
  }
}
