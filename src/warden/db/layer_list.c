/* SPDX-License-Identifier: Apache-2.0 */
/* layer_list.c - see layer_list.h. */
#include "warden/db/layer_list.h"

#include <dirent.h>
#include <fcntl.h>

const char *const *layer_stack(struct arena *a, struct str layers, const char *data, const char *runtime)
{
  size_t n = 3, i = 0;
  for (size_t k = 0; k < layers.n; k++)
    n += layers.p[k] == '\n';
  const char **list = arena_alloc(a, n * sizeof(*list));
  struct str rest = layers, line;
  for (; rest.n; i++) {
    str_cut(rest, '\n', &line, &rest);
    list[i] = arena_z(a, line);
  }
  list[i] = arena_fmt(a, "%s/runtime/%s", data, runtime);
  return list;
}

static int entries(int top, const char *path, const char *const *but)
{
  int fd = openat(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), n = 0;
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  if (!d)
    return fd < 0 ? 0 : -1;
  for (struct dirent *e; (e = readdir(d));) {
    bool known = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
    for (const char *const *b = but; *b; b++)
      known |= !strcmp(e->d_name, *b);
    n += !known;
  }
  closedir(d);
  return n;
}

bool layer_empty(const char *fs)
{
  static const char *const top[] = {"etc", NULL}, *const etc[] = {"hostname", "hosts", "resolv.conf", NULL};
  cleanup_fd int fd = open(fs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd >= 0 && entries(fd, ".", top) == 0 && entries(fd, "etc", etc) == 0;
}
