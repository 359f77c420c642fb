/* SPDX-License-Identifier: Apache-2.0 */
/* volume_client.c - see volume_client.h. */
#include "cli/volume_client.h"

#include <stdio.h>

#define LIST_ARENA ((size_t)1 << 30)

static void begin(struct volume_client *c, struct buf *b, enum content_op op, struct str path)
{
  wire_begin(b, WIRE_CONTENT, 1, 0);
  wire_putz(b, W_TEAM, c->team);
  wire_putz(b, W_ID, c->id);
  wire_put_u64(b, W_OP, op);
  wire_put(b, W_PATH, path);
}

static void put_owner(struct buf *b, const struct volume_file *f)
{
  wire_put_u64(b, W_UID, f->uid);
  wire_put_u64(b, W_GID, f->gid);
  wire_put_u64(b, W_PERMISSIONS, f->mode);
  wire_put_u64(b, W_FORCE, 1);
  if (f->mtime_us >= 0)
    wire_put_u64(b, W_UPDATED, (uint64_t)f->mtime_us);
}

static int call(struct volume_client *c, struct buf *b, int *fd, struct err *err)
{
  int none = -1, r = admin_fetch(&c->line, b, fd ? fd : &none, err);
  if (none >= 0)
    close(none);
  return r;
}

/* ---- what files are told as ---- */

static uint64_t number_of(const struct json *v, const char *name)
{
  int64_t n = 0;
  return json_int(json_get(v, name), &n) || n < 0 ? 0 : (uint64_t)n;
}

static struct str bytes_of(struct arena *a, const struct json *v, const char *name, const char *raw)
{
  struct str coded = json_text(json_get(v, raw), STR_NONE);
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  if (coded.n && !base64_decode(coded, &b))
    return arena_str(a, buf_str(&b));
  return json_text(json_get(v, name), STR(""));
}

static void read_file(struct arena *a, const struct json *v, struct volume_file *out)
{
  struct str type = json_text(json_get(v, "type"), STR("?"));
  *out = (struct volume_file){.type = str_is(type, "file")        ? 'f'
                                      : str_is(type, "directory") ? 'd'
                                      : str_is(type, "symlink")   ? 'l'
                                                                  : '?',
                              .path = bytes_of(a, v, "path", "pathBytes"),
                              .target = bytes_of(a, v, "target", "targetBytes"),
                              .size = number_of(v, "size"),
                              .mode = (unsigned)number_of(v, "mode"),
                              .uid = (unsigned)number_of(v, "uid"),
                              .gid = (unsigned)number_of(v, "gid")};
  out->name = path_base(out->path);
  if (clock_parse(json_text(json_get(v, "mtime"), STR("")), &out->mtime_us))
    out->mtime_us = 0;
}

int volume_client_stat(struct volume_client *c, struct str path, struct arena *a, struct volume_file *out,
                       struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  struct json_error why;
  begin(c, &b, CONTENT_STAT, path);
  int r = call(c, &b, NULL, err);
  const struct json *v = r ? NULL : json_read(a, arena_str(a, wire_get(buf_str(&b), W_BODY)), 0, &why);
  if (!r && !v)
    return err_set(err, -EPROTO, "the server's answer can't be read");
  if (!r)
    read_file(a, v, out);
  return r;
}

int volume_client_list(struct volume_client *c, struct str path, int (*fn)(const struct volume_file *f, void *arg),
                       void *arg, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX), text = BUF_INIT((size_t)128 << 20);
  cleanup_arena struct arena a = ARENA_INIT(LIST_ARENA);
  cleanup_fd int fd = -1;
  struct json_error why;
  begin(c, &b, CONTENT_LIST, path);
  wire_put_u64(&b, W_DEPTH, 1);
  int r = call(c, &b, &fd, err);
  if (r)
    return r;
  if (fd < 0 || lseek(fd, 0, SEEK_SET) || fd_read_all(fd, &text))
    return err_set(err, -EPROTO, "the listing can't be read");
  const struct json *v = json_read(&a, buf_str(&text), 0, &why);
  if (!v)
    return err_set(err, -EPROTO, "the listing can't be read");
  for (const struct json *e = v->kids; !r && e; e = e->next) {
    struct volume_file f;
    read_file(&a, e, &f);
    r = fn(&f, arg);
  }
  return r;
}

int volume_client_open(struct volume_client *c, struct str path, uint64_t *size, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  int fd = -1;
  begin(c, &b, CONTENT_READ, path);
  int r = call(c, &b, &fd, err);
  *size = r ? 0 : wire_u64(buf_str(&b), W_COUNT, 0);
  return r ? r : fd >= 0 ? fd : err_set(err, -EPROTO, "the server sent no descriptor");
}

/* ---- changes ---- */

int volume_client_mkdir(struct volume_client *c, const struct volume_file *f, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  begin(c, &b, CONTENT_MKDIR, f->path);
  put_owner(&b, f);
  int r = call(c, &b, NULL, err);
  return r ? r : volume_client_change(c, f, err); /* one that was there */
}

int volume_client_link(struct volume_client *c, const struct volume_file *f, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  begin(c, &b, CONTENT_LINK, f->path);
  put_owner(&b, f);
  wire_put(&b, W_TARGET, f->target);
  return call(c, &b, NULL, err);
}

int volume_client_change(struct volume_client *c, const struct volume_file *f, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  begin(c, &b, CONTENT_CHANGE, f->path);
  put_owner(&b, f);
  return call(c, &b, NULL, err);
}

int volume_client_remove(struct volume_client *c, struct str path, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  begin(c, &b, CONTENT_REMOVE, path);
  return call(c, &b, NULL, err);
}

/* ---- uploads ---- */

int volume_upload_open(struct volume_client *c, struct str path, struct volume_upload *u, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  u->fd = -1;
  random_id(u->id, 20);
  begin(c, &b, CONTENT_UPLOAD, path);
  wire_putz(&b, W_UPLOAD, u->id);
  wire_put_u64(&b, W_FORCE, 1);
  int r = call(c, &b, &u->fd, err);
  return r ? r : u->fd >= 0 ? 0 : err_set(err, -EPROTO, "the server sent no descriptor");
}

int volume_upload_commit(struct volume_client *c, struct volume_upload *u, const struct volume_file *f, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  begin(c, &b, CONTENT_COMMIT, f->path);
  wire_putz(&b, W_UPLOAD, u->id);
  put_owner(&b, f);
  int r = call(c, &b, NULL, err);
  close(steal_fd(&u->fd));
  return r;
}

void volume_upload_drop(struct volume_client *c, struct volume_upload *u)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  struct err err = ERR_NONE;
  begin(c, &b, CONTENT_DROP, STR("/"));
  wire_putz(&b, W_UPLOAD, u->id);
  call(c, &b, NULL, &err);
  if (u->fd >= 0)
    close(steal_fd(&u->fd));
}
