/* SPDX-License-Identifier: Apache-2.0 */
/* id_shift.c - see id_shift.h.
 *
 * A copy is <shifted>/<hash of the layer's path>/<id_base>, with the path itself in <shifted>/<hash>/layer. It is as
 * large as the layer and shares no page cache with other boxes: the price of such a filesystem, which `cloche doctor`
 * names. */
#include "jail/fs/id_shift.h"

#include "jail/fs/layer_commit.h"
#include "jail/jail_defs.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define DEPTH_MAX 400 /* directories below each other; a descriptor each */

static uint64_t hash_of(const char *text)
{
  uint64_t h = 0xcbf29ce484222325u;
  for (; *text; text++)
    h = (h ^ (unsigned char)*text) * 0x100000001b3u;
  return h;
}

static int make_dir(const char *path, struct err *err)
{
  return mkdir(path, 0700) && errno != EEXIST ? err_errno(err, "making %s", path) : 0;
}

static int note_layer(const char *dir, const char *layer, struct err *err)
{
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/layer", dir);
  int r = file_write_atomic(path, layer, strlen(layer), 0600);
  return r ? err_set(err, r, "writing %s: %s", path, strerrordesc_np(-r)) : 0;
}

static int make_copy(const char *shifted, const char *dir, const char *layer, uint32_t id_base, const char *copy,
                     struct err *err)
{
  int r = make_dir(shifted, err);
  r = r ? r : make_dir(dir, err);
  r = r ? r : note_layer(dir, layer, err);
  r = r ? r : jail_shift(layer, id_base, copy, err);
  if (!r)
    log_info("layer %s copied for the ids from %u on: its filesystem can't map ids", layer, id_base);
  return r == -EEXIST ? 0 : r;
}

int id_shift_open(const char *shifted, const char *layer, uint32_t id_base, struct err *err)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  char dir[PATH_MAX], copy[PATH_MAX + 16];
  snprintf(dir, sizeof(dir), "%s/%016llx", shifted, (unsigned long long)hash_of(layer));
  snprintf(copy, sizeof(copy), "%s/%u", dir, id_base);
  pthread_mutex_lock(&lock);
  int r = access(copy, F_OK) ? make_copy(shifted, dir, layer, id_base, copy, err) : 0;
  pthread_mutex_unlock(&lock);
  if (r)
    return r;
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE};
  cleanup_fd int tree = open_tree(AT_FDCWD, copy, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)))
    return err_errno(err, "opening the copy %s", copy);
  return steal_fd(&tree);
}

/* --- the writable part ---------------------------------------------------------------------------------------- */

static void close_dir(DIR **d)
{
  if (*d)
    closedir(*d);
}

/* A change of owner takes set-id bits away; they are given back. */
static int give(int dir, const char *name, const struct stat *st, uint32_t id_base)
{
  if (st->st_uid >= JAIL_IDS && st->st_gid >= JAIL_IDS)
    return 0;
  uint32_t uid = st->st_uid < JAIL_IDS ? st->st_uid + id_base : st->st_uid,
           gid = st->st_gid < JAIL_IDS ? st->st_gid + id_base : st->st_gid;
  if (fchownat(dir, name, uid, gid, AT_SYMLINK_NOFOLLOW))
    return -errno;
  return S_ISREG(st->st_mode) && (st->st_mode & 06000) && fchmodat(dir, name, st->st_mode & 07777, 0) ? -errno : 0;
}

static int give_all(int above, const char *name, uint32_t id_base, int depth)
{
  struct stat st;
  if (fstatat(above, name, &st, AT_SYMLINK_NOFOLLOW))
    return -errno;
  int r = give(above, name, &st, id_base);
  if (r || !S_ISDIR(st.st_mode))
    return r;
  if (depth == DEPTH_MAX)
    return -ELOOP;
  int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  __attribute__((cleanup(close_dir))) DIR *d = fd < 0 ? NULL : fdopendir(fd);
  if (!d)
    return -errno;
  for (struct dirent *e; !r && (e = readdir(d));)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
      r = give_all(dirfd(d), e->d_name, id_base, depth + 1);
  return r;
}

int id_shift_home(int home, uint32_t id_base)
{
  int r = give_all(home, "upper", id_base, 0);
  return r ? r : give_all(home, "work", id_base, 0);
}

/* --- clearing up ---------------------------------------------------------------------------------------------- */

void id_shift_sweep(const char *shifted)
{
  __attribute__((cleanup(close_dir))) DIR *d = opendir(shifted);
  char path[PATH_MAX];
  for (struct dirent *e; d && (e = readdir(d));) {
    if (e->d_name[0] == '.')
      continue;
    cleanup_buf struct buf layer = BUF_INIT(PATH_MAX);
    snprintf(path, sizeof(path), "%s/%s/layer", shifted, e->d_name);
    if (file_read(path, &layer) || access(buf_z(&layer), F_OK))
      path_remove_tree(dirfd(d), e->d_name);
  }
}
