/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a COPY step copies: an archive of the context's matching files in an unnamed temporary file, and a hash of all
 * that it holds, by which the server knows what it has already. Links are kept as links.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "internal.h"

struct packing {
  int out;
  struct sha256 hash;
  size_t context_len;
  struct buf ignore; /* .dockerignore; "" where there is none */
  struct cloche_error *error;
};

static enum cloche_code failed(struct packing *p, const char *what, const char *path)
{
  return error_set(p->error, CLOCHE_ESYSTEM, "%s %s: %s", what, path, strerror(errno));
}

static bool put_all(int fd, const void *data, size_t len)
{
  const char *at = data;
  while (len) {
    ssize_t n = write(fd, at, len);
    if (n < 0 && errno != EINTR)
      return false;
    if (n > 0)
      at += n, len -= (size_t)n;
  }
  return true;
}

static bool pad(int fd, size_t len)
{
  static const char zeros[512];
  return len % 512 == 0 || put_all(fd, zeros, 512 - len % 512);
}

static void octal(char *to, size_t size, unsigned long long value)
{
  snprintf(to, size, "%0*llo", (int)size - 1, value);
}

/* A header of 512 bytes, ustar. */
static bool put_header(int fd, const char *name, char type, unsigned mode, unsigned long long size, const char *link)
{
  char h[512] = {0};
  snprintf(h, 100, "%s", name);
  octal(h + 100, 8, mode & 07777);
  octal(h + 108, 8, 0);
  octal(h + 116, 8, 0);
  if (size < 1ULL << 33)
    octal(h + 124, 12, size);
  octal(h + 136, 12, 0);
  memset(h + 148, ' ', 8);
  h[156] = type;
  snprintf(h + 157, 100, "%s", link);
  memcpy(h + 257, "ustar\00000", 8);
  unsigned sum = 0;
  for (int i = 0; i < 512; i++)
    sum += (unsigned char)h[i];
  snprintf(h + 148, 8, "%06o", sum);
  return put_all(fd, h, sizeof h);
}

/* "<length> key=value\n", whose length counts itself. */
static void put_record(struct buf *b, const char *key, const char *value)
{
  size_t bare = strlen(key) + strlen(value) + 3, len = bare + 1;
  for (int i = 0; i < 8; i++)
    len = bare + (size_t)snprintf(NULL, 0, "%zu", len);
  buf_printf(b, "%zu %s=%s\n", len, key, value);
}

/* Names, links and sizes that don't fit go before the entry in a header of their own. */
static bool put_long(int fd, const char *name, const char *link, unsigned long long size)
{
  struct buf b = {0};
  char text[24];
  snprintf(text, sizeof text, "%llu", size);
  if (strlen(name) > 99)
    put_record(&b, "path", name);
  if (strlen(link) > 99)
    put_record(&b, "linkpath", link);
  if (size >= 1ULL << 33)
    put_record(&b, "size", text);
  bool ok = !b.failed;
  if (ok && b.len)
    ok = put_header(fd, "pax", 'x', 0644, b.len, "") && put_all(fd, b.data, b.len) && pad(fd, b.len);
  buf_free(&b);
  return ok;
}

static enum cloche_code put_content(struct packing *p, const char *path, off_t size)
{
  int in = open(path, O_RDONLY | O_CLOEXEC);
  if (in < 0)
    return failed(p, "opening", path);
  char chunk[16384];
  off_t left = size;
  enum cloche_code code = CLOCHE_OK;
  while (left > 0 && code == CLOCHE_OK) {
    ssize_t n = read(in, chunk, left < (off_t)sizeof chunk ? (size_t)left : sizeof chunk);
    if (n <= 0) {
      code = error_set(p->error, CLOCHE_ESYSTEM, "%s became shorter while it was read", path);
    } else {
      sha256_add(&p->hash, chunk, (size_t)n);
      if (!put_all(p->out, chunk, (size_t)n))
        code = failed(p, "writing the archive of", path);
      left -= n;
    }
  }
  close(in);
  if (code == CLOCHE_OK && !pad(p->out, (size_t)size))
    code = failed(p, "writing the archive of", path);
  return code;
}

static bool ignored(const struct packing *p, const char *name)
{
  bool out = false;
  const char *at = p->ignore.data ? p->ignore.data : "";
  while (*at) {
    size_t n = strcspn(at, "\n");
    char pattern[1024];
    const char *from = at;
    size_t len = n;
    bool keep = len && *from == '!';
    if (keep)
      from++, len--;
    while (len && (*from == '/' || *from == ' '))
      from++, len--;
    while (len && (from[len - 1] == '/' || from[len - 1] == ' ' || from[len - 1] == '\r'))
      len--;
    if (len && *from != '#' && len < sizeof pattern) {
      snprintf(pattern, sizeof pattern, "%.*s", (int)len, from);
      const char *tail = strncmp(pattern, "**/", 3) == 0 ? pattern + 3 : NULL;
      const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
      if (fnmatch(pattern, name, FNM_PATHNAME | FNM_LEADING_DIR) == 0 ||
          (tail && fnmatch(tail, base, FNM_PATHNAME) == 0))
        out = !keep;
    }
    at += n + (at[n] == '\n');
  }
  return out;
}

static enum cloche_code pack(struct packing *p, const char *path);

static enum cloche_code pack_directory(struct packing *p, const char *path)
{
  struct dirent **list = NULL;
  int n = scandir(path, &list, NULL, alphasort);
  if (n < 0)
    return failed(p, "reading", path);
  enum cloche_code code = CLOCHE_OK;
  for (int i = 0; i < n; i++) {
    if (code == CLOCHE_OK && strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0) {
      struct buf inner = {0};
      buf_printf(&inner, "%s/%s", path, list[i]->d_name);
      code = inner.failed ? op_no_memory(p->error) : pack(p, inner.data);
      buf_free(&inner);
    }
    free(list[i]);
  }
  free(list);
  return code;
}

static enum cloche_code pack_entry(struct packing *p, const char *path, const char *name, const struct stat *st)
{
  char link[4096] = "", text[64];
  if (S_ISLNK(st->st_mode)) {
    ssize_t n = readlink(path, link, sizeof link - 1);
    if (n < 0)
      return failed(p, "reading the link", path);
    link[n] = 0;
  }
  off_t size = S_ISREG(st->st_mode) ? st->st_size : 0;
  char type = S_ISDIR(st->st_mode) ? '5' : S_ISLNK(st->st_mode) ? '2' : '0';
  snprintf(text, sizeof text, "%u%lld", (unsigned)st->st_mode, (long long)size);
  sha256_add(&p->hash, name, strlen(name));
  sha256_add(&p->hash, text, strlen(text));
  sha256_add(&p->hash, link, strlen(link));
  if (!put_long(p->out, name, link, (unsigned long long)size) ||
      !put_header(p->out, name, type, st->st_mode, (unsigned long long)size, link))
    return failed(p, "writing the archive of", path);
  if (S_ISREG(st->st_mode))
    return put_content(p, path, size);
  return S_ISDIR(st->st_mode) ? pack_directory(p, path) : CLOCHE_OK;
}

static enum cloche_code pack(struct packing *p, const char *path)
{
  struct stat st;
  const char *name = path + p->context_len;
  while (*name == '/' || (name[0] == '.' && name[1] == '/'))
    name++;
  if (lstat(path, &st) < 0)
    return failed(p, "looking at", path);
  if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
    return CLOCHE_OK;
  if (*name && strcmp(name, ".") != 0)
    return ignored(p, name) ? CLOCHE_OK : pack_entry(p, path, name, &st);
  return S_ISDIR(st.st_mode) ? pack_directory(p, path) : CLOCHE_OK;
}

static void read_ignore(struct packing *p, const char *context)
{
  struct buf path = {0};
  buf_printf(&path, "%s/.dockerignore", context);
  int fd = path.failed ? -1 : open(path.data, O_RDONLY | O_CLOEXEC);
  char chunk[4096];
  ssize_t n;
  while (fd >= 0 && (n = read(fd, chunk, sizeof chunk)) > 0)
    buf_add(&p->ignore, chunk, (size_t)n);
  if (fd >= 0)
    close(fd);
  p->ignore.failed |= path.failed;
  buf_free(&path);
}

static enum cloche_code pack_matches(struct packing *p, const char *context, const char *source)
{
  struct buf pattern = {0};
  buf_printf(&pattern, "%s/%s", context, source);
  if (pattern.failed)
    return op_no_memory(p->error);
  glob_t found = {0};
  int rc = glob(pattern.data, GLOB_PERIOD, NULL, &found);
  buf_free(&pattern);
  enum cloche_code code = CLOCHE_OK;
  if (rc == GLOB_NOSPACE)
    code = op_no_memory(p->error);
  else if (rc != 0)
    code = error_set(p->error, CLOCHE_EINVAL, "COPY %s: no such file in %s", source, context);
  for (size_t i = 0; i < found.gl_pathc && code == CLOCHE_OK; i++)
    code = pack(p, found.gl_pathv[i]);
  globfree(&found);
  return code;
}

static bool leaves(const char *source)
{
  for (const char *p = source; (p = strstr(p, "..")); p += 2)
    if ((p == source || p[-1] == '/') && (p[2] == 0 || p[2] == '/'))
      return true;
  return false;
}

enum cloche_code copy_archive(struct step *step, const char *context, struct cloche_error *error)
{
  static const char end[1024];
  const char *source = step->args[0];
  if (leaves(source))
    return error_set(error, CLOCHE_EINVAL, "COPY %s: the source lies outside of the context", source);
  const char *dir = getenv("TMPDIR");
  struct packing p = {.out = open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600),
                      .context_len = strlen(context),
                      .error = error};
  if (p.out < 0)
    p.out = memfd_create("cloche-copy", MFD_CLOEXEC);
  if (p.out < 0)
    return failed(&p, "making a temporary file for", source);
  sha256_begin(&p.hash);
  sha256_add(&p.hash, "COPY ", 5);
  sha256_add(&p.hash, source, strlen(source));
  sha256_add(&p.hash, " ", 1);
  sha256_add(&p.hash, step->args[1], strlen(step->args[1]));
  read_ignore(&p, context);
  enum cloche_code code = p.ignore.failed ? op_no_memory(error) : pack_matches(&p, context, source);
  buf_free(&p.ignore);
  if (code == CLOCHE_OK && (!put_all(p.out, end, sizeof end) || lseek(p.out, 0, SEEK_SET) < 0))
    code = failed(&p, "writing the archive of", source);
  if (code != CLOCHE_OK) {
    close(p.out);
    return code;
  }
  unsigned char digest[32];
  sha256_end(&p.hash, digest);
  for (int i = 0; i < 32; i++)
    snprintf(step->hash + 2 * i, 3, "%02x", digest[i]);
  if (step->archive >= 0)
    close(step->archive);
  step->archive = p.out;
  return CLOCHE_OK;
}
