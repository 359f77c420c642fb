/* SPDX-License-Identifier: Apache-2.0 */
/* layer_tree.c - see layer_tree.h. */
#include "cli/layer_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>

static int add_layers(int fs, struct str layers)
{
  struct str line;
  while (layers.n) {
    char path[PATH_MAX];
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
  if (!r && (fsconfig(fs, FSCONFIG_SET_STRING, "redirect_dir", "follow", 0) ||
             fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0)))
    r = -errno;
  int fd = r ? r : fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
  return fd < 0 && !r ? -errno : fd;
}

/* Kernels before 6.5 take layers only as one text of limited length, and from a place in the tree: a namespace of our
 * own. */
static int open_by_text(struct str layers)
{
  char text[4000] = "lowerdir=", at[] = "/tmp/cloche-tree.XXXXXX";
  size_t n = strlen(text);
  if (n + layers.n >= sizeof(text))
    return -E2BIG;
  for (size_t i = 0; i < layers.n; i++)
    text[n++] = layers.p[i] == '\n' ? ':' : layers.p[i];
  text[n] = 0;
  if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || !mkdtemp(at))
    return -errno;
  int fd = mount("overlay", at, "overlay", MS_RDONLY | MS_NODEV | MS_NOSUID, text)
               ? -errno
               : open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  umount2(at, MNT_DETACH);
  rmdir(at);
  return fd;
}

/* An overlay without a writable layer wants two; a single one is what it is. */
int tree_open(const char *layers, struct err *err)
{
  struct str all = str_trim(str_of(layers)), first, rest;
  char path[PATH_MAX];
  bool several = str_cut(all, '\n', &first, &rest);
  int fd = -ENAMETOOLONG;
  if (several && (fd = open_overlay(all)) < 0)
    fd = open_by_text(all);
  if (!several && !str_copyz(first, path, sizeof(path)) && (fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
    fd = -errno;
  return fd < 0 ? err_set(err, fd, "mounting the layers (are you root?): %s", strerrordesc_np(-fd)) : fd;
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
