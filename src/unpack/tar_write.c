/* SPDX-License-Identifier: Apache-2.0 */
/* tar_write.c - see tar_write.h. What a plain header can't hold goes into an extended one before it. */
#include "unpack/tar_write.h"

#include <stdio.h>

#define BLOCK     512
#define OCTAL_8   ((uint64_t)07777777)
#define OCTAL_12  ((uint64_t)077777777777)
#define RECORD_AT 32 /* room for a record's length and key name */

static void octal(char *at, size_t size, uint64_t v)
{
  char text[32];
  snprintf(text, sizeof(text), "%0*llo", (int)size - 1, (unsigned long long)v);
  memcpy(at, text, size);
}

static int header(struct buf *out, char type, struct str name, struct str link, const struct tar_entry *e,
                  uint64_t size)
{
  char h[BLOCK] = {0};
  memcpy(h, name.p, MIN(name.n, (size_t)100));
  octal(h + 100, 8, e->mode & 07777);
  octal(h + 108, 8, e->uid <= OCTAL_8 ? e->uid : 0);
  octal(h + 116, 8, e->gid <= OCTAL_8 ? e->gid : 0);
  octal(h + 124, 12, size <= OCTAL_12 ? size : 0);
  octal(h + 136, 12, e->mtime >= 0 && (uint64_t)e->mtime <= OCTAL_12 ? (uint64_t)e->mtime : 0);
  memset(h + 148, ' ', 8);
  h[156] = type;
  if (link.n)
    memcpy(h + 157, link.p, MIN(link.n, (size_t)100));
  memcpy(h + 257, "ustar\00000", 8);
  unsigned sum = 0;
  for (size_t i = 0; i < BLOCK; i++)
    sum += (unsigned char)h[i];
  octal(h + 148, 7, sum);
  return buf_add(out, h, BLOCK);
}

/* "LENGTH KEY=VALUE\n"; the length counts itself. */
static void record(struct buf *b, const char *prefix, struct str key, struct str value)
{
  size_t rest = strlen(prefix) + key.n + value.n + 3, n = rest + 1;
  char digits[24];
  while ((size_t)snprintf(digits, sizeof(digits), "%zu", n) + rest != n)
    n = rest + strlen(digits);
  buf_addf(b, "%zu %s" STR_FMT "=", n, prefix, STR_ARG(key));
  buf_adds(b, value);
  buf_addc(b, '\n');
}

static void number_record(struct buf *b, const char *key, uint64_t v)
{
  char text[RECORD_AT];
  snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
  record(b, "", str_of(key), str_of(text));
}

static int extended(struct buf *out, const struct tar_entry *e)
{
  cleanup_buf struct buf b = BUF_INIT(TAR_META_MAX);
  if (e->name.n > 100)
    record(&b, "", STR("path"), e->name);
  if (e->link.n > 100)
    record(&b, "", STR("linkpath"), e->link);
  if (e->uid > OCTAL_8)
    number_record(&b, "uid", e->uid);
  if (e->gid > OCTAL_8)
    number_record(&b, "gid", e->gid);
  if (e->size > OCTAL_12)
    number_record(&b, "size", e->size);
  for (size_t i = 0; i < e->nxattrs; i++)
    record(&b, "SCHILY.xattr.", e->xattrs[2 * i], e->xattrs[2 * i + 1]);
  if (!b.n || buf_failed(&b))
    return buf_failed(&b);
  struct tar_entry plain = {.mode = 0644};
  header(out, 'x', STR("headers"), STR_NONE, &plain, b.n);
  buf_adds(out, buf_str(&b));
  tar_write_pad(out, b.n);
  return buf_failed(out);
}

int tar_write_header(struct buf *out, const struct tar_entry *e)
{
  static const char types[] = {
      [TAR_FILE] = '0', [TAR_DIR] = '5', [TAR_SYMLINK] = '2', [TAR_HARDLINK] = '1', [TAR_FIFO] = '6'};
  if (e->kind == TAR_DEVICE || e->name.n > TAR_NAME_MAX)
    return -EINVAL;
  int r = extended(out, e);
  return r ? r : header(out, types[e->kind], e->name, e->link, e, e->kind == TAR_FILE ? e->size : 0);
}

void tar_write_pad(struct buf *out, uint64_t size)
{
  static const char zeros[BLOCK];
  buf_add(out, zeros, (size_t)((BLOCK - size % BLOCK) % BLOCK));
}

void tar_write_end(struct buf *out)
{
  static const char zeros[2 * BLOCK];
  buf_add(out, zeros, sizeof(zeros));
}
