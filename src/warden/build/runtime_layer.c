/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_layer.c - see runtime_layer.h. */
#include "warden/build/runtime_layer.h"

#include "wire/sizes.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

struct walk {
  struct sha256 hash;
  int to; /* directory to copy into, or -1 to hash only */
  struct err *err;
};

static int by_name(const struct dirent **a, const struct dirent **b)
{
  return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_dots(const struct dirent *e)
{
  return strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
}

static int walk_file(struct walk *w, int from, const char *name, int to, unsigned mode)
{
  cleanup_fd int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  cleanup_buf struct buf b = BUF_INIT((size_t)64 << 20);
  int r = in < 0 ? -errno : fd_read_all(in, &b);
  if (r)
    return err_set(w->err, r, "read %s", name);
  if (to < 0) {
    sha256_add(&w->hash, b.p, b.n);
    return 0;
  }
  cleanup_fd int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  r = out < 0 ? -errno : fd_write_all(out, b.p, b.n);
  if (!r && fchmod(out, mode))
    r = -errno;
  return r ? err_set(w->err, r, "write %s", name) : 0;
}

static int walk_dir(struct walk *w, int from, const char *name, int to);

static int walk_entry(struct walk *w, int from, const char *name, int to)
{
  struct stat st;
  if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
    return err_errno(w->err, "stat %s", name);
  unsigned mode = S_ISDIR(st.st_mode) || (st.st_mode & 0111) ? 0755 : 0644;
  char tag[512];
  if (to < 0)
    sha256_add(&w->hash, tag,
               (size_t)snprintf(tag, sizeof(tag), "%s %o %lld\n", name, mode,
                                S_ISDIR(st.st_mode) ? 0LL : (long long)st.st_size));
  if (S_ISDIR(st.st_mode))
    return walk_dir(w, from, name, to);
  return S_ISREG(st.st_mode) ? walk_file(w, from, name, to, mode) : 0;
}

static int walk_dir(struct walk *w, int from, const char *name, int to)
{
  cleanup_fd int dir = openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  cleanup_fd int sub = -1;
  if (dir < 0)
    return err_errno(w->err, "open %s", name);
  if (to >= 0) {
    if (mkdirat(to, name, 0755) || fchmodat(to, name, 0755, 0))
      return err_errno(w->err, "make %s", name);
    sub = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (sub < 0)
      return err_errno(w->err, "open %s", name);
  }
  struct dirent **list;
  int n = scandirat(dir, ".", &list, not_dots, by_name), r = n < 0 ? err_errno(w->err, "list %s", name) : 0;
  for (int i = 0; i < n; i++) {
    r = r ? r : walk_entry(w, dir, list[i]->d_name, sub);
    free(list[i]);
  }
  if (n >= 0)
    free(list);
  if (to < 0)
    sha256_add(&w->hash, "up\n", 3);
  return r;
}

int runtime_stage(const char *source, const char *data, char name[LAYER_ID_SIZE], struct err *err)
{
  struct walk w = {.to = -1, .err = err};
  uint8_t digest[SHA256_LEN];
  char hex[2 * SHA256_LEN + 1], path[PATH_MAX], tmp[PATH_MAX];
  sha256_init(&w.hash);
  int r = walk_dir(&w, AT_FDCWD, source, -1);
  if (r)
    return err_wrap(err, "runtime files in %s", source);
  sha256_end(&w.hash, digest);
  hex_encode(digest, sizeof(digest), hex);
  snprintf(name, LAYER_ID_SIZE, "%.32s", hex);
  snprintf(path, sizeof(path), "%s/runtime", data);
  path_mkdirs(path, 0755);
  snprintf(path, sizeof(path), "%s/runtime/%s", data, name);
  if (access(path, F_OK) == 0)
    return 0;
  snprintf(tmp, sizeof(tmp), "%s/runtime/.new-%d", data, getpid());
  path_remove_tree(AT_FDCWD, tmp);
  path_mkdirs(tmp, 0755);
  cleanup_fd int from = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                 to = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct dirent **list;
  int n = scandirat(from, ".", &list, not_dots, by_name);
  for (int i = 0; i < n; i++) {
    r = r ? r : walk_entry(&w, from, list[i]->d_name, to);
    free(list[i]);
  }
  if (n >= 0)
    free(list);
  if (!r && rename(tmp, path))
    r = err_errno(err, "rename %s", tmp);
  if (r)
    path_remove_tree(AT_FDCWD, tmp);
  return r;
}

void runtime_sweep(const char *data, bool (*used)(const char *name, void *arg), void *arg)
{
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/runtime", data);
  DIR *d = opendir(path);
  if (!d)
    return;
  for (struct dirent *e; (e = readdir(d));)
    if (not_dots(e) && !used(e->d_name, arg))
      path_remove_tree(dirfd(d), e->d_name);
  closedir(d);
}
