/* SPDX-License-Identifier: Apache-2.0 */
/* volume_archive.c - `cloche volume backup` and `restore`: a volume as a tar archive with owners, modes and times, and
 * back. Files, directories and links are kept, a file with several names as several files; pipes, sockets and extended
 * attributes are not. Holes of files are zeros in an archive and take no room in one that is a file. Boxes may write
 * meanwhile: each file is as it was when it was read. */
#include "cli/sparse.h"
#include "cli/volume_client.h"
#include "unpack/tar_write.h"
#include "wire/volume_path.h"

#include <fcntl.h>
#include <stdio.h>

#define PIECE ((size_t)1 << 20)

/* ---- backup ---- */

struct backup {
  struct volume_client *client;
  int fd;
  bool seeks; /* holes are holes in the archive, too */
  struct buf head;
  char *piece;
  VEC(char *) dirs; /* still to be listed */
  uint64_t files, left_out;
  struct err *err;
};

static int put(struct backup *b, const void *p, size_t n)
{
  int r = fd_write_all(b->fd, p, n);
  return r ? err_set(b->err, r, "writing the archive: %s", strerrordesc_np(-r)) : 0;
}

static int put_head(struct backup *b)
{
  int r = buf_failed(&b->head) ? err_set(b->err, -E2BIG, "a name is too long for an archive")
                               : put(b, b->head.p, b->head.n);
  buf_clear(&b->head);
  return r;
}

static int put_zeros(struct backup *b, uint64_t n)
{
  if (b->seeks)
    return lseek(b->fd, (off_t)n, SEEK_CUR) < 0 ? err_errno(b->err, "writing the archive") : 0;
  int r = 0;
  memset(b->piece, 0, PIECE);
  for (size_t k; !r && n; n -= k) {
    k = (size_t)MIN((uint64_t)PIECE, n);
    r = put(b, b->piece, k);
  }
  return r;
}

static int put_range(struct backup *b, int fd, uint64_t at, uint64_t end)
{
  int r = 0;
  while (!r && at < end) {
    ssize_t k = pread(fd, b->piece, (size_t)MIN((uint64_t)PIECE, end - at), (off_t)at);
    if (k < 0)
      return err_errno(b->err, "reading the volume");
    if (k == 0)
      return put_zeros(b, end - at);
    at += (uint64_t)k;
    r = put(b, b->piece, (size_t)k);
  }
  return r;
}

/* As long as its header says: a file that grows is cut, one that shrinks is filled with zeros. */
static int put_content(struct backup *b, int fd, uint64_t size)
{
  int r = 0;
  for (uint64_t at = 0, data, hole; !r && at < size; at = hole) {
    sparse_next(fd, at, size, &data, &hole);
    r = data > at ? put_zeros(b, data - at) : 0;
    r = r ? r : put_range(b, fd, data, hole);
  }
  tar_write_pad(&b->head, size);
  return r ? r : put_head(b);
}

static int put_entry(const struct volume_file *f, void *arg)
{
  struct backup *b = arg;
  cleanup_fd int fd = -1;
  struct tar_entry e = {.kind = f->type == 'd'   ? TAR_DIR
                                : f->type == 'l' ? TAR_SYMLINK
                                                 : TAR_FILE,
                        .name = str_skip(f->path, 1),
                        .link = f->type == 'l' ? f->target : STR_NONE,
                        .mode = f->mode,
                        .uid = f->uid,
                        .gid = f->gid,
                        .mtime = f->mtime_us / 1000000};
  struct err none = ERR_NONE;
  if (f->type == '?') {
    b->left_out++;
    return 0;
  }
  if (f->type == 'f' && (fd = volume_client_open(b->client, f->path, &e.size, &none)) < 0) {
    if (fd != -ENOENT)
      return err_set(b->err, fd, "%s", none.msg);
    b->left_out++; /* gone meanwhile */
    return 0;
  }
  if (f->type == 'd')
    vec_push(&b->dirs, xstrndup(f->path.p, f->path.n));
  b->files++;
  int r = tar_write_header(&b->head, &e) ? err_set(b->err, -E2BIG, "a name is too long for an archive") : put_head(b);
  return r || f->type != 'f' ? r : put_content(b, fd, e.size);
}

static int put_all(struct backup *b)
{
  int r = volume_client_list(b->client, STR("/"), put_entry, b, b->err);
  while (!r && b->dirs.n) {
    cleanup_free char *path = b->dirs.p[--b->dirs.n];
    struct err why = ERR_NONE;
    r = volume_client_list(b->client, str_of(path), put_entry, b, &why);
    if (r == -ENOENT) /* gone meanwhile */
      r = 0;
    if (r && !b->err->code)
      *b->err = why;
  }
  tar_write_end(&b->head);
  return r ? r : put_head(b);
}

int volume_backup(struct volume_client *c, const char *file, struct err *err)
{
  char temp[4096];
  bool to_file = strcmp(file, "-") != 0;
  if ((size_t)snprintf(temp, sizeof(temp), "%s.part", file) >= sizeof(temp))
    return err_set(err, -ENAMETOOLONG, "%s is too long", file);
  cleanup_fd int fd = to_file ? open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600) : dup(1);
  if (fd < 0)
    return err_errno(err, "%s", temp);
  cleanup_free char *piece = xmalloc(PIECE);
  struct backup b = {.client = c, .fd = fd, .seeks = to_file, .head = BUF_INIT(1 << 20), .piece = piece, .err = err};
  int r = put_all(&b);
  buf_free(&b.head);
  while (b.dirs.n)
    free(b.dirs.p[--b.dirs.n]);
  vec_free(&b.dirs);
  if (!r && to_file && (fsync(fd) || rename(temp, file)))
    r = err_errno(err, "%s", file);
  if (r && to_file)
    unlink(temp);
  if (!r)
    fprintf(stderr, "%llu entries%s\n", (unsigned long long)b.files,
            b.left_out ? "; pipes, sockets and what was removed meanwhile were left out" : "");
  return r;
}

/* ---- restore ---- */

struct restore {
  struct volume_client *client;
  struct volume_upload upload;
  bool open; /* an upload is under way */
  char path[VOLUME_PATH_SIZE];
  struct volume_file file;
  uint64_t files, left_out;
  struct err *err;
};

static int take_entry(void *arg, const struct tar_entry *e)
{
  struct restore *r = arg;
  cleanup_buf struct buf path = BUF_INIT(1 << 17);
  if (volume_path_clean(e->name.n ? e->name : STR("/"), &path) || str_copyz(buf_str(&path), r->path, sizeof(r->path)))
    return err_set(r->err, -EINVAL, "the archive has a name that no volume can have");
  r->file = (struct volume_file){.path = str_of(r->path),
                                 .target = e->link,
                                 .mode = e->mode,
                                 .uid = e->uid > 65535 ? 0 : (unsigned)e->uid,
                                 .gid = e->gid > 65535 ? 0 : (unsigned)e->gid,
                                 .mtime_us = MAX(MIN(e->mtime, (int64_t)253402300799), (int64_t)0) * 1000000};
  r->files++;
  if (e->kind == TAR_DIR)
    return str_is(r->file.path, "/") ? 0 : volume_client_mkdir(r->client, &r->file, r->err);
  struct volume_file parents = {.mode = 0755, .mtime_us = -1, .path = path_dir(r->file.path)};
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct volume_file there;
  struct err none = ERR_NONE;
  int k = volume_client_stat(r->client, parents.path, &a, &there, &none);
  if (k == -ENOENT && (k = volume_client_mkdir(r->client, &parents, r->err)))
    return k;
  if (e->kind == TAR_SYMLINK)
    return volume_client_link(r->client, &r->file, r->err);
  if (e->kind != TAR_FILE) {
    r->files--;
    r->left_out++;
    return 0;
  }
  k = volume_upload_open(r->client, r->file.path, &r->upload, r->err);
  r->open = !k;
  return k;
}

static int take_data(void *arg, struct str piece)
{
  struct restore *r = arg;
  if (r->open && sparse_zeros(piece))
    return lseek(r->upload.fd, (off_t)piece.n, SEEK_CUR) < 0 ? err_errno(r->err, "writing %s", r->path) : 0;
  int k = r->open ? fd_write_all(r->upload.fd, piece.p, piece.n) : 0;
  return k ? err_set(r->err, k, "writing %s: %s", r->path, strerrordesc_np(-k)) : 0;
}

static int take_end(void *arg)
{
  struct restore *r = arg;
  if (!r->open)
    return 0;
  if (ftruncate(r->upload.fd, lseek(r->upload.fd, 0, SEEK_CUR))) /* zeros at its end */
    return err_errno(r->err, "writing %s", r->path);
  r->open = false;
  return volume_upload_commit(r->client, &r->upload, &r->file, r->err);
}

static const struct tar_ops ops = {take_entry, take_data, take_end};

int volume_restore(struct volume_client *c, const char *file, struct err *err)
{
  cleanup_fd int fd = strcmp(file, "-") != 0 ? open(file, O_RDONLY | O_CLOEXEC) : dup(0);
  if (fd < 0)
    return err_errno(err, "%s", file);
  cleanup_free char *piece = xmalloc(PIECE);
  struct restore r = {.client = c, .err = err};
  struct tar *t = tar_new(&ops, &r);
  int k = 0;
  for (ssize_t n; !k && (n = read(fd, piece, PIECE)) != 0;)
    k = n < 0 ? err_errno(err, "reading %s", file) : tar_feed(t, str_make(piece, (size_t)n), err);
  k = k ? k : tar_finish(t, err);
  tar_free(t);
  if (r.open)
    volume_upload_drop(c, &r.upload);
  if (!k)
    fprintf(stderr, "%llu entries%s\n", (unsigned long long)r.files,
            r.left_out ? "; hard links, pipes and devices were left out" : "");
  return k;
}
