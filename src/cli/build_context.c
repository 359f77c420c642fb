/* SPDX-License-Identifier: Apache-2.0 */
/* build_context.c - see build_context.h. */
#include "cli/build_context.h"

#include "cli/layer_tree.h"
#include "unpack/tar_write.h"
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>

#define DEPTH_MAX   256
#define IGNORE_MAX  ((size_t)1 << 20)
#define SEGMENT_MAX 256
#define PIECE       ((size_t)256 << 10)
#define HEAD_MAX    ((size_t)64 << 10)

/* ---- patterns ---- */

static const char *cut_segment(const char *text, char out[SEGMENT_MAX])
{
  const char *end = strchrnul(text, '/');
  str_copyz(str_make(text, MIN((size_t)(end - text), (size_t)SEGMENT_MAX - 1)), out, SEGMENT_MAX);
  return *end ? end + 1 : end;
}

bool context_match(const char *pattern, const char *path)
{
  char want[SEGMENT_MAX], have[SEGMENT_MAX];
  if (!*pattern)
    return !*path;
  const char *rest = cut_segment(pattern, want);
  if (!strcmp(want, "**")) {
    for (;; path = cut_segment(path, have)) {
      if (context_match(rest, path) || (!*rest && *path))
        return true;
      if (!*path)
        return false;
    }
  }
  if (!*path)
    return false;
  const char *below = cut_segment(path, have);
  return !fnmatch(want, have, 0) && context_match(rest, below);
}

/* A pattern that means a directory means all below it. */
static bool means(const char *pattern, const char *path)
{
  char part[PATH_MAX];
  if (context_match(pattern, path))
    return true;
  for (const char *slash = path; (slash = strchr(slash, '/')); slash++)
    if (!str_copyz(str_make(path, (size_t)(slash - path)), part, sizeof(part)) && context_match(pattern, part))
      return true;
  return false;
}

/* Without ./ in front and / behind; "" is the context itself. */
static char *plain_pattern(struct str text)
{
  while (str_starts(text, STR("./")) || str_starts(text, STR("/")))
    text = str_skip(text, text.p[0] == '/' ? 1 : 2);
  while (text.n && text.p[text.n - 1] == '/')
    text.n--;
  return xstrndup(str_is(text, ".") ? "" : text.p, str_is(text, ".") ? 0 : text.n);
}

static bool left_out(const struct context *c, const char *path, bool *may_return)
{
  bool out = false;
  *may_return = false;
  for (size_t i = 0; i < c->rules.n; i++) {
    *may_return |= c->rules.p[i].keeps;
    if (means(c->rules.p[i].pattern, path))
      out = !c->rules.p[i].keeps;
  }
  return out;
}

/* ---- the directory ---- */

static void read_rules(struct context *c)
{
  char path[4200];
  cleanup_buf struct buf b = BUF_INIT(IGNORE_MAX);
  snprintf(path, sizeof(path), "%s/.dockerignore", c->path);
  if (file_read(path, &b))
    return;
  struct str rest = buf_str(&b), line;
  while (rest.n) {
    str_cut(rest, '\n', &line, &rest);
    line = str_trim(line);
    bool keeps = str_starts(line, STR("!"));
    if (!line.n || line.p[0] == '#')
      continue;
    struct context_rule rule = {plain_pattern(str_trim(str_skip(line, keeps))), keeps};
    vec_push(&c->rules, rule);
  }
}

int context_open(struct context *c, const char *path, struct err *err)
{
  *c = (struct context){.top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (c->top < 0 || str_copyz(str_of(path), c->path, sizeof(c->path)))
    return err_errno(err, "the directory of files to copy, %s", path);
  read_rules(c);
  return 0;
}

void context_close(struct context *c)
{
  if (c->top >= 0)
    close(steal_fd(&c->top));
  for (size_t i = 0; i < c->rules.n; i++)
    free(c->rules.p[i].pattern);
  vec_free(&c->rules);
}

void context_files_free(struct context_files *f)
{
  for (size_t i = 0; i < f->paths.n; i++)
    free(f->paths.p[i]);
  vec_free(&f->paths);
}

/* ---- finding ---- */

static int walk(const struct context *c, int dir, const char *below, const char *pattern, unsigned depth,
                struct context_files *out, struct err *err)
{
  cleanup_list struct tree_list list = {0};
  if (depth > DEPTH_MAX || tree_list(dir, &list))
    return err_set(err, -EIO, "%s/%s can't be listed, or is nested too deep", c->path, below);
  for (size_t i = 0; i < list.v.n; i++) {
    cleanup_free char *path = xasprintf("%s%s%s", below, below[0] ? "/" : "", list.v.p[i].name);
    bool may_return, out_of_it = left_out(c, path, &may_return);
    if (!out_of_it && (!pattern[0] || means(pattern, path)))
      vec_push(&out->paths, xstrdup(path));
    if (!S_ISDIR(list.v.p[i].st.st_mode) || (out_of_it && !may_return))
      continue;
    cleanup_fd int sub = openat(dir, list.v.p[i].name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = sub < 0 ? err_errno(err, "opening %s/%s", c->path, path) : walk(c, sub, path, pattern, depth + 1, out, err);
    if (r)
      return r;
  }
  return 0;
}

static int by_bytes(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

int context_find(const struct context *c, struct str source, struct context_files *out, struct err *err)
{
  *out = (struct context_files){0};
  cleanup_free char *pattern = plain_pattern(source);
  if (str_starts(source, STR("/")) || str_is(source, "..") || str_starts(source, STR("../")) ||
      str_search(source, STR("/../")) >= 0)
    return err_set(err, -EINVAL, "COPY '" STR_FMT "': files come from %s and below", STR_ARG(source), c->path);
  if (!pattern[0])
    vec_push(&out->paths, xstrdup("."));
  int r = walk(c, c->top, "", pattern, 0, out, err);
  if (!r && !out->paths.n)
    r = err_set(err, -ENOENT, "COPY '" STR_FMT "': there is no such file in %s, or .dockerignore leaves it out",
                STR_ARG(source), c->path);
  if (!r)
    qsort(out->paths.p, out->paths.n, sizeof(*out->paths.p), by_bytes);
  return r;
}

/* ---- fingerprint and archive ---- */

/* Calls `take` with the content, piece by piece. The size is what was told of it before: an archive's header has gone.
 */
static int read_file(const struct context *c, const char *path, uint64_t size,
                     int (*take)(void *arg, const void *p, size_t n), void *arg, struct err *err)
{
  cleanup_fd int fd = openat(c->top, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  cleanup_free char *piece = xmalloc(PIECE);
  if (fd < 0)
    return err_errno(err, "opening %s/%s", c->path, path);
  for (uint64_t left = size; left;) {
    ssize_t n = read(fd, piece, (size_t)MIN(left, (uint64_t)PIECE));
    if (n <= 0)
      return err_set(err, -EIO, "%s/%s changed while it was read", c->path, path);
    int r = take(arg, piece, (size_t)n);
    if (r)
      return err_set(err, r, "%s/%s: %s", c->path, path, strerrordesc_np(-r));
    left -= (uint64_t)n;
  }
  return 0;
}

static int take_hash(void *arg, const void *p, size_t n)
{
  sha256_add(arg, p, n);
  return 0;
}

static int look(const struct context *c, const char *path, struct stat *st, char link[PATH_MAX], struct err *err)
{
  if (fstatat(c->top, path, st, AT_SYMLINK_NOFOLLOW))
    return err_errno(err, "%s/%s", c->path, path);
  ssize_t n = S_ISLNK(st->st_mode) ? readlinkat(c->top, path, link, PATH_MAX - 1) : 0;
  if (n < 0)
    return err_errno(err, "reading the link %s/%s", c->path, path);
  link[n] = 0;
  return 0;
}

int context_hash(const struct context *c, const struct context_files *f, struct str source, struct str target,
                 char hex[65], struct err *err)
{
  struct sha256 sum;
  uint8_t digest[SHA256_LEN];
  cleanup_buf struct buf head = BUF_INIT(HEAD_MAX);
  sha256_init(&sum);
  buf_addf(&head, "COPY " STR_FMT " " STR_FMT, STR_ARG(source), STR_ARG(target));
  sha256_add(&sum, head.p, head.n);
  for (size_t i = 0; i < f->paths.n; i++) {
    struct stat st;
    char link[PATH_MAX];
    int r = look(c, f->paths.p[i], &st, link, err);
    if (r)
      return r;
    buf_clear(&head);
    buf_addf(&head, "%s%u", f->paths.p[i], st.st_mode);
    if (!S_ISDIR(st.st_mode)) /* whose size is the filesystem's; PyPI e2b before 2.52 and npm e2b took it along */
      buf_addf(&head, "%lld", (long long)st.st_size);
    buf_addz(&head, link);
    sha256_add(&sum, head.p, head.n);
    if (S_ISREG(st.st_mode) && (r = read_file(c, f->paths.p[i], (uint64_t)st.st_size, take_hash, &sum, err)))
      return r;
  }
  sha256_end(&sum, digest);
  hex_encode(digest, sizeof(digest), hex);
  return 0;
}

struct packing {
  int fd;
  uint64_t bytes;
};

static int take_pack(void *arg, const void *p, size_t n)
{
  struct packing *k = arg;
  k->bytes += n;
  return fd_write_all(k->fd, p, n);
}

static int pack_one(const struct context *c, struct packing *k, const char *path, struct err *err)
{
  struct stat st;
  char link[PATH_MAX];
  cleanup_buf struct buf head = BUF_INIT(HEAD_MAX);
  int r = look(c, path, &st, link, err);
  if (r)
    return r;
  struct tar_entry e = {.kind = S_ISREG(st.st_mode)   ? TAR_FILE
                                : S_ISDIR(st.st_mode) ? TAR_DIR
                                                      : TAR_SYMLINK,
                        .name = str_of(path),
                        .link = str_of(link),
                        .size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0,
                        .mode = st.st_mode & 07777,
                        .mtime = st.st_mtime};
  if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
    return err_set(err, -EINVAL, "%s/%s is a device, a pipe or a socket, which no template can hold", c->path, path);
  if (tar_write_header(&head, &e) || take_pack(k, head.p, head.n))
    return err_set(err, -EIO, "writing the archive for %s", path);
  r = e.kind == TAR_FILE ? read_file(c, path, e.size, take_pack, k, err) : 0;
  buf_clear(&head);
  tar_write_pad(&head, e.size);
  if (!r && head.n && take_pack(k, head.p, head.n))
    r = err_set(err, -EIO, "writing the archive for %s", path);
  return r;
}

int context_pack(const struct context *c, const struct context_files *f, int fd, uint64_t *bytes, struct err *err)
{
  struct packing k = {.fd = fd};
  cleanup_buf struct buf end = BUF_INIT(HEAD_MAX);
  for (size_t i = 0; i < f->paths.n; i++) {
    int r = pack_one(c, &k, f->paths.p[i], err);
    if (r)
      return r;
  }
  tar_write_end(&end);
  int r = take_pack(&k, end.p, end.n);
  *bytes = k.bytes;
  return r ? err_set(err, r, "writing the archive: %s", strerrordesc_np(-r)) : 0;
}
