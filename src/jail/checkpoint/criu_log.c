/* SPDX-License-Identifier: Apache-2.0 */
/* criu_log.c - see criu_log.h. The table holds what criu is known to say; what it does not know is told as it is. */
#include "jail/checkpoint/criu_log.h"
#include "jail/checkpoint/criu.h"

#include <fcntl.h>
#include <stdio.h>

#define LOG_MAX    ((size_t)16 << 20)
#define LINES_TOLD 12

static const struct {
  const char *said, *means;
  int code;
} table[] = {
    {"No space left on device", "the disk is full", -ENOSPC},
    {"Disk quota exceeded", "the disk is full", -ENOSPC},
    {"File too large", "a file of the checkpoint grew beyond what is allowed", -EFBIG},
    {"io_uring", "uses io_uring, which can't be checkpointed", -ENOTSUP},
    {"being traced", "is traced by a debugger", -ENOTSUP},
    {"ptrace", "is traced by a debugger", -ENOTSUP},
    {"nested", "has namespaces of its own", -ENOTSUP},
    /* For some time that is a kernel which enters the box: see checkpoint_dump. */
    {"external socket is used", "is connected by a unix socket to a process outside the box", -EISCONN},
    {"Can't dump half of stream unix connection", "is connected by a unix socket to a process outside the box",
     -EISCONN},
    {"Unix socket", "is connected by a unix socket to a process outside the box",
     -EISCONN}, /* of another network: not found */
    {"half of pipe", "is connected by a pipe to a process outside the box", -ENOTSUP},
    {"userfault", "uses userfaultfd, which can't be checkpointed", -ENOTSUP},
    {"Unsupported socket", "has a socket of a kind that can't be checkpointed", -ENOTSUP},
    {"Unknown socket", "has a socket of a kind that can't be checkpointed", -ENOTSUP},
    {"Can't dump ghost file", "has a deleted file open that is too large to be checkpointed", -ENOTSUP},
    {"Can't dump file", "has a file open of a kind that can't be checkpointed", -ENOTSUP},
    {"Can't lookup mount", "has a file open that is in none of the box's mounts", -ENOTSUP},
    {"Can't handle", "has a resource that can't be checkpointed", -ENOTSUP},
};

static int read_log(int dir, struct buf *b)
{
  cleanup_fd int fd = openat(dir, CRIU_LOG, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  return fd < 0 ? -errno : fd_read_all(fd, b);
}

static bool is_error(struct str line)
{
  return str_search(line, STR("Error (")) >= 0;
}

/* "(00.063296) Error (criu/cr-dump.c:389): words" - the words. */
static struct str words_of(struct str line)
{
  ptrdiff_t at = str_search(line, STR("): "));
  return at < 0 ? line : str_trim(str_skip(line, (size_t)at + 3));
}

/* The number behind "pid: " or "(pid " or after "task " in a line, or 0. */
static pid_t pid_in(struct str line)
{
  static const char *const before[] = {"(pid: ", "pid: ", "pid ", "task ", "seize ", "process "};
  for (size_t i = 0; i < ARRAY_LEN(before); i++) {
    ptrdiff_t at = str_search(line, str_of(before[i]));
    uint64_t pid = 0;
    if (at < 0)
      continue;
    struct str rest = str_skip(line, (size_t)at + strlen(before[i]));
    size_t n = 0;
    while (n < rest.n && rest.p[n] >= '0' && rest.p[n] <= '9')
      n++;
    if (n && !str_u64(str_sub(rest, 0, n), &pid) && pid < 1u << 22)
      return (pid_t)pid;
  }
  return 0;
}

static const struct frozen_process *find(const frozen_processes *list, pid_t pid)
{
  for (size_t i = 0; list && pid > 0 && i < list->n; i++)
    if (list->p[i].pid == pid)
      return &list->p[i];
  return NULL;
}

static void tell_end(struct str log)
{
  size_t lines = 0, at = log.n;
  while (at > 0 && lines < LINES_TOLD)
    if (log.p[--at] == '\n' && at + 1 < log.n)
      lines++;
  struct str rest = str_skip(log, at), line;
  while (rest.n > 0) {
    str_cut(rest, '\n', &line, &rest);
    if (str_trim(line).n)
      log_warn("criu: " STR_FMT, STR_ARG(str_sub(line, 0, 300)));
  }
}

struct finding {
  struct str first; /* the first error, which later ones follow from */
  const char *means;
  int code;
  const struct frozen_process *who;
};

static void judge(struct str line, const frozen_processes *processes, struct finding *f)
{
  struct str words = words_of(line);
  if (str_search(words, STR("RLIMIT_NOFILE for self")) >= 0) /* harmless: it wants more descriptors than it needs */
    return;
  if (!f->first.n)
    f->first = words;
  if (!f->who)
    f->who = find(processes, pid_in(words));
  for (size_t i = 0; !f->means && i < ARRAY_LEN(table); i++)
    if (str_search(words, str_of(table[i].said)) >= 0) {
      f->means = table[i].means;
      f->code = table[i].code;
    }
}

int criu_log_explain(int dir, const frozen_processes *processes, int code, const char *what, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(LOG_MAX);
  struct finding f = {.code = code};
  if (read_log(dir, &b) || !b.n)
    return err_wrap(err, "%s", what);
  struct str rest = buf_str(&b), line;
  while (rest.n > 0) {
    str_cut(rest, '\n', &line, &rest);
    if (is_error(line))
      judge(line, processes, &f);
  }
  tell_end(buf_str(&b));
  if (f.code == -ENOSPC)
    return err_set(err, f.code, "%s: %s", what, f.means);
  if (f.means && f.who)
    return err_set(err, f.code, "%s: process %d (%s) %s", what, f.who->inside, f.who->name, f.means);
  if (f.means)
    return err_set(err, f.code, "%s: a process %s (" STR_FMT ")", what, f.means, STR_ARG(str_sub(f.first, 0, 160)));
  if (f.who)
    return err_set(err, f.code, "%s: process %d (%s): " STR_FMT, what, f.who->inside, f.who->name,
                   STR_ARG(str_sub(f.first, 0, 200)));
  return f.first.n ? err_set(err, f.code, "%s: " STR_FMT, what, STR_ARG(str_sub(f.first, 0, 300)))
                   : err_wrap(err, "%s", what);
}

bool criu_log_doubtful(int dir, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(LOG_MAX);
  if (read_log(dir, &b))
    return false;
  ptrdiff_t at = str_search(buf_str(&b), STR("Can't lookup mount"));
  if (at < 0)
    return false;
  struct str line, rest;
  str_cut(str_skip(buf_str(&b), (size_t)at), '\n', &line, &rest);
  err_set(err, -ENOTSUP, "a process has a file open that is in none of the box's mounts (" STR_FMT ")",
          STR_ARG(str_sub(line, 0, 200)));
  return true;
}
