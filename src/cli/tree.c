/* tree.c - see tree.h. */
#include "cli/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>

static int add_layers(int fs, struct str layers)
{
  struct str line;
  while (layers.n) {
    char path[4096];
    str_cut(layers, '\n', &line, &layers);
    if (line.n && (str_copyz(line, path, sizeof(path)) || fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir+", path, 0)))
      return -errno;
  }
  return 0;
}

static int open_overlay(struct str layers)
{
  cleanup_fd int fs = fsopen("overlay", FSOPEN_CLOEXEC);
  int r = fs < 0 ? -errno : add_layers(fs, layers);
  if (!r && (fsconfig(fs, FSCONFIG_SET_STRING, "redirect_dir", "follow", 0) || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0)))
    r = -errno;
  int fd = r ? r : fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
  return fd < 0 && !r ? -errno : fd;
}

/* An overlay without a writable layer wants two; a single one is what it is. */
int tree_open(const char *layers, struct err *err)
{
  struct str all = str_trim(str_of(layers)), first, rest;
  char path[4096];
  bool several = str_cut(all, '\n', &first, &rest);
  int fd = -ENAMETOOLONG;
  if (several)
    fd = open_overlay(all);
  else if (!str_copyz(first, path, sizeof(path)) && (fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
    fd = -errno;
  return fd < 0 ? err_set(err, fd, "putting the layers together (are you root?): %s", strerrordesc_np(-fd)) : fd;
}

static int by_name(const void *a, const void *b)
{
  return strcmp(((const struct tree_name *)a)->name, ((const struct tree_name *)b)->name);
}

int tree_list(int dir, struct tree_list *out)
{
  *out = (struct tree_list){0};
  int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = own < 0 ? NULL : fdopendir(own);
  if (!d)
    return -errno;
  errno = 0;
  for (struct dirent *e; (e = readdir(d)); errno = 0) {
    struct tree_name one;
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || fstatat(dir, e->d_name, &one.st, AT_SYMLINK_NOFOLLOW))
      continue;
    one.name = xstrdup(e->d_name);
    vec_push(&out->v, one);
  }
  int r = -errno;
  closedir(d);
  if (out->v.n)
    qsort(out->v.p, out->v.n, sizeof(*out->v.p), by_name);
  return r;
}

void tree_list_free(struct tree_list *l)
{
  for (size_t i = 0; i < l->v.n; i++)
    free(l->v.p[i].name);
  vec_free(&l->v);
}
