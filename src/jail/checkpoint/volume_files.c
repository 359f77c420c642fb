/* SPDX-License-Identifier: Apache-2.0 */
/* volume_files.c - see volume_files.h. files.img is two magic numbers and then records, each a length and a protocol
 * buffer (criu's images/fdinfo.proto and regfile.proto name the fields). */
#include "jail/checkpoint/volume_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define IMAGE     "files.img"
#define IMAGE_NEW "files.img.new"
#define IMAGE_MAX ((size_t)64 << 20)
#define MAGIC     8 /* bytes */

enum { FILE_REG = 3 };                               /* of a file_entry */
enum { REG_MOUNT = 7, REG_SIZE = 8, REG_MODE = 10 }; /* of a reg_file_entry */

static bool take_varint(struct str *s, uint64_t *v)
{
  *v = 0;
  for (unsigned shift = 0; s->n > 0 && shift < 64; shift += 7) {
    unsigned char c = (unsigned char)s->p[0];
    *s = str_skip(*s, 1);
    *v |= (uint64_t)(c & 127) << shift;
    if (c < 128)
      return true;
  }
  return false;
}

static void put_varint(struct buf *b, uint64_t v)
{
  for (; v >= 128; v >>= 7)
    buf_addc(b, (char)(v | 128));
  buf_addc(b, (char)v);
}

struct field {
  unsigned number, kind;
  uint64_t value;   /* of kind 0 */
  struct str bytes; /* of kind 2 */
  struct str whole;
};

static bool take_field(struct str *s, struct field *f)
{
  const char *begin = s->p;
  uint64_t tag;
  *f = (struct field){0};
  if (!take_varint(s, &tag))
    return false;
  f->number = (unsigned)(tag >> 3);
  f->kind = (unsigned)(tag & 7);
  size_t fixed = f->kind == 1 ? 8 : f->kind == 5 ? 4 : 0;
  if (f->kind != 0 && f->kind != 2 && !fixed)
    return false;
  if (!fixed && !take_varint(s, &f->value))
    return false;
  if (f->kind == 2)
    fixed = f->value <= s->n ? (size_t)f->value : s->n + 1;
  if (fixed > s->n)
    return false;
  f->bytes = str_sub(*s, 0, fixed);
  *s = str_skip(*s, fixed);
  f->whole = str_make(begin, (size_t)(s->p - begin));
  return true;
}

/* 1: on one of the mounts. 0: elsewhere. */
static int on_mounts(struct str reg, const uint64_t *mounts, size_t n)
{
  struct field f;
  bool found = false;
  while (reg.n) {
    if (!take_field(&reg, &f))
      return -EBADMSG;
    for (size_t i = 0; f.number == REG_MOUNT && f.kind == 0 && i < n; i++)
      found |= (f.value >> 1 ^ -(f.value & 1)) == mounts[i]; /* a signed number */
  }
  return found;
}

static void put_loosened(struct buf *out, struct str reg)
{
  cleanup_buf struct buf inner = BUF_INIT(IMAGE_MAX);
  struct field f;
  while (reg.n && take_field(&reg, &f))
    if (f.number != REG_SIZE && f.number != REG_MODE)
      buf_adds(&inner, f.whole);
  put_varint(out, FILE_REG << 3 | 2);
  put_varint(out, inner.n);
  buf_adds(out, buf_str(&inner));
  if (buf_failed(&inner))
    out->failed = buf_failed(&inner);
}

static int rewrite_entry(struct str entry, const uint64_t *mounts, size_t n, struct buf *out)
{
  cleanup_buf struct buf b = BUF_INIT(IMAGE_MAX);
  struct field f;
  while (entry.n) {
    if (!take_field(&entry, &f))
      return -EBADMSG;
    int there = f.number == FILE_REG && f.kind == 2 ? on_mounts(f.bytes, mounts, n) : 0;
    if (there < 0)
      return there;
    if (there)
      put_loosened(&b, f.bytes);
    else
      buf_adds(&b, f.whole);
  }
  uint32_t size = (uint32_t)b.n;
  buf_add(out, &size, sizeof(size));
  buf_adds(out, buf_str(&b));
  return buf_failed(&b) ? -ENOBUFS : 0;
}

int volume_files_rewrite(struct str image, const uint64_t *mounts, size_t n, struct buf *out)
{
  if (image.n < MAGIC)
    return -EBADMSG;
  buf_adds(out, str_sub(image, 0, MAGIC));
  for (struct str rest = str_skip(image, MAGIC); rest.n;) {
    uint32_t size;
    if (rest.n < sizeof(size))
      return -EBADMSG;
    memcpy(&size, rest.p, sizeof(size));
    rest = str_skip(rest, sizeof(size));
    if (size > rest.n)
      return -EBADMSG;
    int r = rewrite_entry(str_sub(rest, 0, size), mounts, n, out);
    if (r)
      return r;
    rest = str_skip(rest, size);
  }
  return buf_failed(out) ? -ENOBUFS : 0;
}

static int replace(int dir, struct str bytes)
{
  cleanup_fd int fd = openat(dir, IMAGE_NEW, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  int r = fd < 0 ? -errno : fd_write_all(fd, bytes.p, bytes.n);
  if (!r && renameat(dir, IMAGE_NEW, dir, IMAGE))
    r = -errno;
  if (r)
    unlinkat(dir, IMAGE_NEW, 0);
  return r;
}

int volume_files_loosen(int dir, const uint64_t *mounts, size_t n, struct err *err)
{
  char path[PROC_PATH + sizeof(IMAGE)];
  cleanup_buf struct buf in = BUF_INIT(IMAGE_MAX), out = BUF_INIT(IMAGE_MAX);
  if (!n)
    return 0;
  snprintf(path, sizeof(path), "/proc/self/fd/%d/" IMAGE, dir);
  int r = file_read(path, &in);
  r = r ? r : volume_files_rewrite(buf_str(&in), mounts, n, &out);
  r = r ? r : replace(dir, buf_str(&out));
  return r ? err_set(err, r, "the checkpoint's list of open files: %s", strerrordesc_np(-r)) : 0;
}
