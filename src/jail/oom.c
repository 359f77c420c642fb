/* SPDX-License-Identifier: Apache-2.0 */
/* oom.c - who was killed for memory. The kernel tells it only in its log, one line per kill:
 * "oom-kill:...,oom_memcg=/cloche-<instance>/<id>,task_memcg=...,task=NAME,pid=...,uid=...". NAME is the box's choice
 * and is cleaned before anyone sees it. */
#include "jail/jail.h"

#include <fcntl.h>
#include <stdio.h>

#define RECORD_MAX  8192
#define RECORDS_MAX 20000

/* The name between the last "task=" and the ",pid=" behind it, when the line is about this group. */
static bool victim_in(struct str line, struct str group, struct str *name)
{
  ptrdiff_t at = str_search(line, group);
  if (at < 0 || str_search(line, STR("oom-kill:")) < 0)
    return false;
  struct str rest = str_skip(line, (size_t)at + group.n);
  at = str_search(rest, STR(",task="));
  if (at < 0)
    return false;
  rest = str_skip(rest, (size_t)at + 6);
  at = str_search(rest, STR(",pid="));
  *name = str_sub(rest, 0, at < 0 ? 0 : (size_t)at);
  return name->n > 0;
}

static void keep_clean(struct str name, char *out, size_t size)
{
  size_t n = 0;
  for (size_t i = 0; i < name.n && n + 1 < size; i++)
    out[n++] = name.p[i] > ' ' && name.p[i] < 0x7f ? name.p[i] : '?';
  out[n] = 0;
}

int jail_oom_victim(const char *instance, const char *id, char *out, size_t size)
{
  char record[RECORD_MAX], group[192];
  int found = -ENOENT;
  snprintf(group, sizeof(group), "oom_memcg=/cloche-%s/%s,", instance, id);
  cleanup_fd int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  for (int i = 0; i < RECORDS_MAX; i++) {
    ssize_t n = read(fd, record, sizeof(record));
    if (n < 0 && (errno == EPIPE || errno == EINTR)) /* EPIPE: records were overwritten; the next read goes on */
      continue;
    if (n <= 0)
      break;
    struct str name;
    if (victim_in(str_make(record, (size_t)n), str_of(group), &name)) {
      keep_clean(name, out, size);
      found = 0;
    }
  }
  return found;
}
