/* SPDX-License-Identifier: Apache-2.0 */
/* volume_copy.c - `cloche volume cp`: a file or a tree from this machine into a volume, or back. Files, directories and
 * links, and holes of files; owners and modes are kept into a volume, and modes out of it, less what the umask says. */
#include "cli/cli.h"
#include "cli/layer_tree.h"
#include "cli/sparse.h"
#include "cli/volume_client.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define PIECE     ((size_t)1 << 20)
#define DEPTH_MAX 256

struct copy {
  struct volume_client *client;
  struct err *err;
  char *piece;
  mode_t mask; /* what this user keeps from others: sandboxes chose the modes */
};

static int pass(struct copy *c, int from, int to, const char *name)
{
  int r = sparse_copy(from, to, c->piece, PIECE);
  return r ? err_set(c->err, r, "copying %s: %s", name, strerrordesc_np(-r)) : 0;
}

/* ---- out of a volume ---- */

struct out {
  struct copy *copy;
  int dir;
  unsigned depth;
};

static int file_out(struct copy *c, int dir, const char *name, const struct volume_file *f)
{
  uint64_t size;
  cleanup_fd int from = volume_client_open(c->client, f->path, &size, c->err);
  if (from < 0)
    return from;
  unlinkat(dir, name, 0);
  cleanup_fd int to = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (to < 0)
    return err_errno(c->err, "making %s", name);
  int r = pass(c, from, to, name);
  return r ? r : fchmod(to, f->mode & 0777 & ~c->mask) ? err_errno(c->err, "mode of %s", name) : 0;
}

static int tree_out(struct copy *c, int dir, const char *name, const struct volume_file *f, unsigned depth);

static int entry_out(const struct volume_file *f, void *arg)
{
  struct out *o = arg;
  char name[256];
  if (str_copyz(f->name, name, sizeof(name)) || !name[0] || !strcmp(name, ".") || !strcmp(name, "..") ||
      strchr(name, '/'))
    return err_set(o->copy->err, -EPROTO, "the server told of a file without a proper name");
  return tree_out(o->copy, o->dir, name, f, o->depth + 1);
}

static int tree_out(struct copy *c, int dir, const char *name, const struct volume_file *f, unsigned depth)
{
  char target[4096];
  if (depth > DEPTH_MAX)
    return err_set(c->err, -ELOOP, "%s is nested too deep", name);
  if (f->type == 'f')
    return file_out(c, dir, name, f);
  if (f->type == 'l') {
    unlinkat(dir, name, 0);
    return str_copyz(f->target, target, sizeof(target)) || symlinkat(target, dir, name)
               ? err_errno(c->err, "making the link %s", name)
               : 0;
  }
  if (f->type != 'd') {
    usage_error(STR_FMT " is no file, directory or link; left out", STR_ARG(f->path));
    return 0;
  }
  bool made = !mkdirat(dir, name, 0700); /* one that was there is not the sandbox's to open to others */
  if (!made && errno != EEXIST)
    return err_errno(c->err, "making %s", name);
  cleanup_fd int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (below < 0)
    return err_errno(c->err, "opening %s", name);
  struct out o = {c, below, depth};
  int r = volume_client_list(c->client, f->path, entry_out, &o, c->err);
  if (r || !made)
    return r;
  return fchmod(below, f->mode & 0777 & ~c->mask) ? err_errno(c->err, "mode of %s", name) : 0;
}

static int copy_out(struct copy *c, struct str path, const char *local)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct volume_file f;
  struct stat st;
  char name[4096], dir[4096];
  int r = volume_client_stat(c->client, path, &a, &f, c->err);
  if (r)
    return r;
  bool into = !stat(local, &st) && S_ISDIR(st.st_mode);
  struct str base = into ? (str_is(f.path, "/") ? STR(".") : f.name) : path_base(str_of(local));
  struct str above = into ? str_of(local) : path_dir(str_of(local));
  if (str_copyz(base, name, sizeof(name)) || str_copyz(above, dir, sizeof(dir)))
    return err_set(c->err, -ENAMETOOLONG, "%s is too long", local);
  cleanup_fd int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return at < 0 ? err_errno(c->err, "%s", dir) : tree_out(c, at, name, &f, 0);
}

/* ---- into a volume ---- */

static int file_in(struct copy *c, int dir, const char *name, const struct volume_file *f)
{
  struct volume_upload u;
  cleanup_fd int from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (from < 0)
    return err_errno(c->err, "opening %s", name);
  int r = volume_upload_open(c->client, f->path, &u, c->err);
  if (r)
    return r;
  r = pass(c, from, u.fd, name);
  if (!r)
    return volume_upload_commit(c->client, &u, f, c->err);
  volume_upload_drop(c->client, &u);
  return r;
}

static int tree_in(struct copy *c, int dir, const char *name, struct str path, unsigned depth);

static int dir_in(struct copy *c, int dir, const char *name, const struct volume_file *f, unsigned depth)
{
  cleanup_list struct tree_list list = {0};
  cleanup_fd int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (below < 0 || tree_list(below, &list))
    return err_errno(c->err, "listing %s", name);
  int r = str_is(f->path, "/") ? 0 : volume_client_mkdir(c->client, f, c->err);
  for (size_t i = 0; !r && i < list.v.n; i++) {
    cleanup_buf struct buf path = BUF_INIT(8192);
    if (path_join(f->path, str_of(list.v.p[i].name), &path))
      return err_set(c->err, -ENAMETOOLONG, "%s: its path is too long", list.v.p[i].name);
    r = tree_in(c, below, list.v.p[i].name, buf_str(&path), depth + 1);
  }
  return r;
}

static int tree_in(struct copy *c, int dir, const char *name, struct str path, unsigned depth)
{
  struct stat st;
  char target[4096];
  if (depth > DEPTH_MAX)
    return err_set(c->err, -ELOOP, "%s is nested too deep", name);
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
    return err_errno(c->err, "%s", name);
  struct volume_file f = {.path = path,
                          .mode = st.st_mode & 07777,
                          .uid = st.st_uid > 65535 ? 0 : st.st_uid, /* ids of no box */
                          .gid = st.st_gid > 65535 ? 0 : st.st_gid,
                          .mtime_us = (int64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000};
  if (S_ISREG(st.st_mode))
    return file_in(c, dir, name, &f);
  if (S_ISDIR(st.st_mode))
    return dir_in(c, dir, name, &f, depth);
  if (S_ISLNK(st.st_mode)) {
    ssize_t n = readlinkat(dir, name, target, sizeof(target));
    f.target = str_make(target, (size_t)MAX(n, (ssize_t)0));
    return n <= 0 ? err_errno(c->err, "reading the link %s", name) : volume_client_link(c->client, &f, c->err);
  }
  fprintf(stderr, "cloche: %s is no file, directory or link; left out\n", name);
  return 0;
}

static int copy_in(struct copy *c, const char *local, struct str path)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  cleanup_buf struct buf to = BUF_INIT(8192);
  struct volume_file f;
  struct err none = ERR_NONE;
  struct str base = path_base(str_of(local));
  bool into = !volume_client_stat(c->client, path, &a, &f, &none) && f.type == 'd';
  bool itself = str_is(base, ".") || str_is(base, "/"); /* its entries */
  if (into && !itself ? path_join(path, base, &to) : path_clean(path, &to))
    return err_set(c->err, -ENAMETOOLONG, "the path is too long");
  struct stat st;
  if (stat(local, &st))
    return err_errno(c->err, "%s", local);
  return tree_in(c, AT_FDCWD, local, buf_str(&to), 0);
}

int volume_copy(struct volume_client *client, bool in, const char *local, const char *path, struct err *err)
{
  cleanup_free char *piece = xmalloc(PIECE);
  struct copy c = {client, err, piece, umask(0)};
  umask(c.mask);
  return in ? copy_in(&c, local, str_of(path)) : copy_out(&c, str_of(path), local);
}
