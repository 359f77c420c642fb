/* SPDX-License-Identifier: Apache-2.0 */
/* file_pack.c - see file_pack.h. */
#include "wire/file_pack.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define DEPTH_MAX 4

struct packing {
  struct buf lines, bodies;
  size_t n;
};

static void packing_free(struct packing *p)
{
  buf_free(&p->lines);
  buf_free(&p->bodies);
}

const char *file_pack_type(struct str name)
{
  static const struct {
    const char *ending, *type;
  } types[] = {{".html", "text/html; charset=utf-8"},
               {".js", "text/javascript; charset=utf-8"},
               {".css", "text/css; charset=utf-8"},
               {".json", "application/json"},
               {".svg", "image/svg+xml"},
               {".png", "image/png"},
               {".ico", "image/x-icon"},
               {".woff2", "font/woff2"},
               {".woff", "font/woff"},
               {".ttf", "font/ttf"},
               {".txt", "text/plain; charset=utf-8"},
               {".webmanifest", "application/manifest+json"}};
  for (size_t i = 0; i < ARRAY_LEN(types); i++)
    if (str_ends(name, str_of(types[i].ending)))
      return types[i].type;
  return "application/octet-stream";
}

static int add_body(struct packing *p, const char *path, size_t *at, size_t *n, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(FILE_PACK_MAX);
  int r = file_read(path, &b);
  if (r)
    return err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
  *at = p->bodies.n;
  *n = b.n;
  if (buf_adds(&p->bodies, buf_str(&b)))
    return err_set(err, -EFBIG, "the files below the console's directory exceed %zu bytes at %s", FILE_PACK_MAX, path);
  return 0;
}

static void etag_of(struct str body, char out[FILE_PACK_ETAG_SIZE])
{
  uint8_t hash[SHA256_LEN];
  char hex[2 * SHA256_LEN + 1];
  sha256_of(body.p, body.n, hash);
  hex_encode(hash, sizeof(hash), hex);
  snprintf(out, FILE_PACK_ETAG_SIZE, "\"%.32s\"", hex);
}

static int add_file(struct packing *p, const char *path, const char *name, struct err *err)
{
  char gzip[PATH_MAX], etag[FILE_PACK_ETAG_SIZE];
  size_t at, n, gzip_at = 0, gzip_n = 0;
  if (++p->n > FILE_PACK_FILES_MAX)
    return err_set(err, -E2BIG, "more than %d files below the console's directory", FILE_PACK_FILES_MAX);
  int r = add_body(p, path, &at, &n, err);
  if (!r)
    etag_of(str_make(p->bodies.p + at, n), etag);
  if (!r && snprintf(gzip, sizeof(gzip), "%s.gz", path) < (int)sizeof(gzip) && !access(gzip, R_OK))
    r = add_body(p, gzip, &gzip_at, &gzip_n, err);
  if (!r)
    buf_addf(&p->lines, "%s\t%s\t%s\t%zu\t%zu\t%zu\t%zu\n", name, file_pack_type(str_of(name)), etag, at, n, gzip_at,
             gzip_n);
  return r;
}

static int add_dir(struct packing *p, const char *dir, const char *below, unsigned depth, struct err *err);

static int add_entry(struct packing *p, const char *dir, const char *below, const char *entry, unsigned depth,
                     struct err *err)
{
  char path[PATH_MAX], name[PATH_MAX];
  struct stat st;
  if (snprintf(path, sizeof(path), "%s/%s", dir, entry) >= (int)sizeof(path) ||
      snprintf(name, sizeof(name), "%s%s%s", below, below[0] ? "/" : "", entry) >= (int)sizeof(name) || stat(path, &st))
    return err_errno(err, "%s/%s", dir, entry);
  for (const char *c = name; *c; c++)
    if ((unsigned char)*c <= ' ')
      return err_set(err, -EINVAL, "%s: the name of a file of the console has blanks", path);
  if (S_ISDIR(st.st_mode))
    return add_dir(p, path, name, depth + 1, err);
  return S_ISREG(st.st_mode) && !str_ends(str_of(name), STR(".gz")) ? add_file(p, path, name, err) : 0;
}

static int add_dir(struct packing *p, const char *dir, const char *below, unsigned depth, struct err *err)
{
  if (depth > DEPTH_MAX)
    return err_set(err, -ELOOP, "%s: more than %d directories deep", dir, DEPTH_MAX);
  cleanup_dir DIR *d = opendir(dir);
  if (!d)
    return err_errno(err, "%s", dir);
  int r = 0;
  for (struct dirent *e; !r && (e = readdir(d));)
    if (e->d_name[0] != '.')
      r = add_entry(p, dir, below, e->d_name, depth, err);
  return r;
}

int file_pack_read_dir(const char *dir, struct buf *out, struct err *err)
{
  __attribute__((cleanup(packing_free))) struct packing p = {BUF_INIT(FILE_PACK_FILES_MAX * (PATH_MAX + 256)),
                                                             BUF_INIT(FILE_PACK_MAX), 0};
  int r = add_dir(&p, dir, "", 0, err);
  if (r)
    return r;
  buf_addf(out, "%zu\n", p.n);
  buf_adds(out, buf_str(&p.lines));
  buf_adds(out, buf_str(&p.bodies));
  return buf_failed(out) || buf_failed(&p.lines) ? err_set(err, -ENOMEM, "no memory for the console") : 0;
}

static int slice(struct str bodies, struct str at, struct str n, struct str *out)
{
  uint64_t from, length;
  if (str_u64(at, &from) || str_u64(n, &length) || from > bodies.n || length > bodies.n - from)
    return -EPROTO;
  *out = str_sub(bodies, from, length);
  return 0;
}

/* The fields of a line; false: there are not exactly seven. */
static bool fields_of(struct str line, struct str f[7])
{
  for (size_t i = 0; i < 7; i++)
    if (str_cut(line, '\t', &f[i], &line) != (i < 6))
      return false;
  return true;
}

static int take_line(struct str line, struct str bodies, struct packed_file *f)
{
  struct str part[7];
  if (!fields_of(line, part) || slice(bodies, part[3], part[4], &f->body) || slice(bodies, part[5], part[6], &f->gzip))
    return -EPROTO;
  f->name = part[0];
  f->type = part[1];
  f->etag = part[2];
  if (!f->gzip.n)
    f->gzip = STR_NONE;
  return 0;
}

int file_pack_open(struct str bytes, struct file_pack *out)
{
  struct str count, bodies, line, rest;
  uint64_t n;
  out->n = 0;
  if (!str_cut(bytes, '\n', &count, &rest) || str_u64(count, &n) || n > FILE_PACK_FILES_MAX)
    return -EPROTO;
  bodies = rest;
  for (uint64_t i = 0; i < n; i++)
    if (!str_cut(bodies, '\n', &line, &bodies))
      return -EPROTO;
  for (uint64_t i = 0; i < n; i++) {
    str_cut(rest, '\n', &line, &rest);
    if (take_line(line, bodies, &out->files[i]))
      return -EPROTO;
  }
  out->n = n;
  return 0;
}

const struct packed_file *file_pack_find(const struct file_pack *p, struct str name)
{
  for (size_t i = 0; i < p->n; i++)
    if (str_eq(name, p->files[i].name))
      return &p->files[i];
  return NULL;
}
