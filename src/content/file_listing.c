/* SPDX-License-Identifier: Apache-2.0 */
/* file_listing.c - what is below a directory, to some depth. Each directory is opened by its path, without following
 * links, so a tree of any depth costs one descriptor; what lies deeper than a path may be long is left out. The entries
 * of a directory stand together, by name; those of its directories come after them. */
#include "content/file_ops.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

struct pending {
  char *path;
  uint64_t level;
};

struct walk {
  int root;
  uint64_t depth, most, n; /* n: entries looked at, those that are left out too */
  int64_t until_us;
  struct buf text;
  struct jw json;
  VEC(struct pending) dirs; /* still to be listed, the last one first */
};

struct names {
  VEC(char *) all;
};

static void names_free(struct names *n)
{
  for (size_t i = 0; i < n->all.n; i++)
    free(n->all.p[i]);
  vec_free(&n->all);
}
#define cleanup_names __attribute__((cleanup(names_free)))

static int by_name(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(DIR *d, struct walk *w, bool top, struct names *out)
{
  for (struct dirent *e; (e = readdir(d));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || (top && !strcmp(e->d_name, UPLOADS_DIR)))
      continue;
    if (w->n++ >= w->most)
      return -E2BIG;
    if (clock_mono_us() > w->until_us)
      return -EBUSY;
    vec_push(&out->all, xstrdup(e->d_name));
  }
  if (out->all.n)
    qsort(out->all.p, out->all.n, sizeof(*out->all.p), by_name);
  return 0;
}

static int put_entry(struct walk *w, int dir, const struct pending *at, const char *name)
{
  struct stat st;
  char path[PATH_MAX];
  int n = snprintf(path, sizeof(path), "%s%s%s", at->path, at->path[1] ? "/" : "", name);
  if (n < 0 || (size_t)n >= sizeof(path) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
    return 0; /* gone meanwhile, or without a path that a client could name */
  file_put_stat(&w->json, dir, str_make(path, (size_t)n), &st);
  if (S_ISDIR(st.st_mode) && at->level < w->depth) {
    struct pending below = {xstrdup(path), at->level + 1};
    vec_push(&w->dirs, below);
  }
  if (clock_mono_us() > w->until_us)
    return -EBUSY;
  return buf_failed(&w->text) ? -E2BIG : 0;
}

static int list_dir(struct walk *w, int fd, const struct pending *at)
{
  cleanup_names struct names names = {0};
  cleanup_dir DIR *d = fdopendir(fd);
  if (!d)
    return close(fd), -ENOMEM;
  int r = read_names(d, w, !strcmp(at->path, "/"), &names);
  size_t first = w->dirs.n;
  for (size_t i = 0; !r && i < names.all.n; i++)
    r = put_entry(w, dirfd(d), at, names.all.p[i]);
  for (size_t i = first, k = w->dirs.n; i + 1 < k; i++, k--) { /* by name from the end */
    struct pending p = w->dirs.p[i];
    w->dirs.p[i] = w->dirs.p[k - 1];
    w->dirs.p[k - 1] = p;
  }
  return r;
}

static int list_pending(struct walk *w)
{
  int r = 0;
  while (!r && w->dirs.n) {
    struct pending at = w->dirs.p[--w->dirs.n];
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    long fd = syscall(SYS_openat2, w->root, at.path, &how, sizeof(how));
    if (fd < 0 && clock_mono_us() > w->until_us)
      r = -EBUSY;
    r = fd < 0 ? r : list_dir(w, (int)fd, &at); /* one that is gone or another thing by now is left out */
    free(at.path);
  }
  while (w->dirs.n)
    free(w->dirs.p[--w->dirs.n].path);
  vec_free(&w->dirs);
  return r;
}

static int to_memory(struct str text, struct err *err)
{
  cleanup_fd int fd = memfd_create("cloche-listing", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  int r = fd < 0 ? -errno : fd_write_all(fd, text.p, text.n);
  if (!r && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
    r = -errno;
  return r ? err_set(err, r, "the listing can't be kept: %s", strerrordesc_np(-r)) : steal_fd(&fd);
}

int file_list(int root, struct str path, uint64_t depth, const struct list_limits *limits, uint64_t *size,
              struct err *err)
{
  struct walk w = {.root = root,
                   .depth = depth,
                   .most = limits->entries,
                   .until_us = clock_mono_us() + (int64_t)limits->seconds * 1000000,
                   .text = BUF_INIT((size_t)limits->mb << 20)};
  char text[PATH_MAX];
  int top = file_open_in(root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  if (top < 0 || str_copyz(path, text, sizeof(text)))
    return err_set(err, -ENOENT, "there is no directory '" STR_FMT "' in this volume", STR_ARG(path));
  w.json = JW(&w.text);
  jw_open(&w.json, '[');
  int r = list_dir(&w, top, &(struct pending){text, 1});
  int below = list_pending(&w); /* frees what is left, too */
  r = r ? r : below;
  jw_close(&w.json, ']');
  if (!r && buf_failed(&w.text))
    r = -E2BIG;
  if (r == -E2BIG)
    err_set(err, r,
            "there are more than %llu entries below '" STR_FMT "', or they take more than %u MiB (settings "
            "volume_listing_max, volume_listing_mb): ask for a smaller 'depth' or for its directories one by one",
            (unsigned long long)limits->entries, STR_ARG(path), limits->mb);
  else if (r == -EBUSY)
    err_set(err, r,
            "listing '" STR_FMT "' takes longer than %u seconds (setting volume_listing_seconds): try again, ask for a "
            "smaller 'depth' or for its directories one by one",
            STR_ARG(path), limits->seconds);
  else if (r)
    err_set(err, r, "'" STR_FMT "' can't be listed: %s", STR_ARG(path), strerrordesc_np(-r));
  if (!r)
    r = to_memory(buf_str(&w.text), err);
  *size = w.text.n;
  buf_free(&w.text);
  return r;
}
