/* SPDX-License-Identifier: Apache-2.0 */
/* tar_read.c - see tar_read.h. One state machine over blocks of 512 bytes. */
#include "unpack/tar_read.h"

#define BLOCK      512
#define XATTRS_MAX 64

enum state { HEADER, CONTENT, META, PADDING, OVER };

struct tar {
  const struct tar_ops *ops;
  void *arg;
  enum state state;
  char block[BLOCK];
  size_t have;      /* bytes of the block that are there */
  uint64_t left;    /* bytes of content or of an extended header to come */
  unsigned padding; /* and of its last block */
  char meta_kind;   /* x, g, L or K */
  bool in_file;     /* an entry with content is open */
  /* what extended headers said about the next entry */
  struct buf meta, name, link;
  bool has_name, has_link, has_size, has_uid, has_gid, has_mtime;
  uint64_t size, uid, gid;
  int64_t mtime;
  struct arena arena;
  struct str xattrs[2 * XATTRS_MAX];
  size_t nxattrs;
};

struct tar *tar_new(const struct tar_ops *ops, void *arg)
{
  struct tar *t = xcalloc(1, sizeof(*t));
  t->ops = ops;
  t->arg = arg;
  t->arena = ARENA_INIT(2 * TAR_META_MAX);
  buf_init(&t->meta, TAR_META_MAX);
  buf_init(&t->name, TAR_NAME_MAX);
  buf_init(&t->link, TAR_NAME_MAX);
  return t;
}

void tar_free(struct tar *t)
{
  if (!t)
    return;
  buf_free(&t->meta);
  buf_free(&t->name);
  buf_free(&t->link);
  arena_free(&t->arena);
  free(t);
}

/* ---- fields ---- */

static struct str field(const char *block, size_t at, size_t n)
{
  const char *end = memchr(block + at, 0, n);
  return str_make(block + at, end ? (size_t)(end - (block + at)) : n);
}

/* Octal text, or big-endian binary where the first bit is set. */
static int number(const char *block, size_t at, size_t n, uint64_t *out)
{
  const unsigned char *p = (const unsigned char *)block + at;
  uint64_t v = 0;
  if (p[0] & 0x80) {
    for (size_t i = 0; i < n; i++) {
      if (v >> 55)
        return -ERANGE;
      v = v << 8 | (i ? p[i] : p[i] & 0x7fu);
    }
    *out = v;
    return 0;
  }
  struct str text = str_trim(field(block, at, n));
  for (size_t i = 0; i < text.n; i++) {
    if (text.p[i] < '0' || text.p[i] > '7' || v >> 60)
      return -EINVAL;
    v = v << 3 | (uint64_t)(text.p[i] - '0');
  }
  *out = v;
  return 0;
}

static bool sum_right(const char *block)
{
  uint64_t want, sum = 0;
  if (number(block, 148, 8, &want))
    return false;
  for (size_t i = 0; i < BLOCK; i++)
    sum += i >= 148 && i < 156 ? ' ' : (unsigned char)block[i];
  return sum == want;
}

static bool all_zero(const char *block)
{
  for (size_t i = 0; i < BLOCK; i++)
    if (block[i])
      return false;
  return true;
}

/* ---- extended headers ---- */

static int keep_name(struct buf *b, bool *has, struct str value, struct err *err)
{
  buf_clear(b);
  if (!value.n || memchr(value.p, 0, value.n) || buf_adds(b, value))
    return err_set(err, -EBADMSG, "a name in the archive is empty, has a NUL byte or is longer than %d bytes",
                   TAR_NAME_MAX);
  *has = true;
  return 0;
}

static int pax_number(struct str value, uint64_t *out, bool *has, struct err *err)
{
  if (str_u64(value, out))
    return err_set(err, -EBADMSG, "the archive has the number '" STR_FMT "'", STR_ARG(str_sub(value, 0, 40)));
  *has = true;
  return 0;
}

static int pax_time(struct tar *t, struct str value)
{
  struct str whole, fraction;
  str_cut(value, '.', &whole, &fraction);
  t->has_mtime = !str_i64(whole, &t->mtime);
  return 0;
}

static int pax_xattr(struct tar *t, struct str name, struct str value, struct err *err)
{
  if (t->nxattrs == XATTRS_MAX)
    return err_set(err, -E2BIG, "an entry has more than %d extended attributes", XATTRS_MAX);
  struct str kept = arena_str(&t->arena, value), key = arena_str(&t->arena, name);
  if (!kept.p || !key.p || memchr(name.p, 0, name.n))
    return err_set(err, -EBADMSG, "extended attributes that are too large or badly named");
  t->xattrs[2 * t->nxattrs] = key;
  t->xattrs[2 * t->nxattrs++ + 1] = kept;
  return 0;
}

static int pax_record(struct tar *t, struct str key, struct str value, struct err *err)
{
  static const char xattr[] = "SCHILY.xattr.";
  if (str_is(key, "path"))
    return keep_name(&t->name, &t->has_name, value, err);
  if (str_is(key, "linkpath"))
    return keep_name(&t->link, &t->has_link, value, err);
  if (str_is(key, "size"))
    return pax_number(value, &t->size, &t->has_size, err);
  if (str_is(key, "uid"))
    return pax_number(value, &t->uid, &t->has_uid, err);
  if (str_is(key, "gid"))
    return pax_number(value, &t->gid, &t->has_gid, err);
  if (str_is(key, "mtime"))
    return pax_time(t, value);
  if (str_starts(key, STR(xattr)))
    return pax_xattr(t, str_skip(key, sizeof(xattr) - 1), value, err);
  if (str_starts(key, STR("GNU.sparse.")))
    return err_set(err, -ENOTSUP, "the archive has a sparse file; pack it again without sparse entries");
  return 0;
}

/* Records of "LENGTH KEY=VALUE\n", where LENGTH counts the whole record. */
static int pax_read(struct tar *t, struct str text, struct err *err)
{
  while (text.n) {
    struct str digits, rest, key, value;
    uint64_t n;
    str_cut(str_sub(text, 0, 24), ' ', &digits, &rest);
    if (str_u64(digits, &n) || n > text.n || n < digits.n + 3 || text.p[n - 1] != '\n')
      return err_set(err, -EBADMSG, "an extended header of the archive is broken");
    struct str record = str_sub(text, digits.n + 1, (size_t)n - digits.n - 2);
    if (!str_cut(record, '=', &key, &value))
      return err_set(err, -EBADMSG, "an extended header of the archive lacks '='");
    int r = pax_record(t, key, value, err);
    if (r)
      return r;
    text = str_skip(text, (size_t)n);
  }
  return 0;
}

static int meta_done(struct tar *t, struct err *err)
{
  struct str text = buf_str(&t->meta);
  if (t->meta_kind == 'x')
    return pax_read(t, text, err);
  if (t->meta_kind == 'g')
    return 0;
  while (text.n && !text.p[text.n - 1])
    text.n--;
  return t->meta_kind == 'L' ? keep_name(&t->name, &t->has_name, text, err)
                             : keep_name(&t->link, &t->has_link, text, err);
}

static void forget(struct tar *t)
{
  t->has_name = t->has_link = t->has_size = t->has_uid = t->has_gid = t->has_mtime = false;
  t->nxattrs = 0;
  arena_free(&t->arena);
  t->arena = ARENA_INIT(2 * TAR_META_MAX);
}

/* ---- entries ---- */

static int kind_of(char flag, struct str name, enum tar_kind *out, struct err *err)
{
  static const struct {
    char flag;
    enum tar_kind kind;
  } kinds[] = {{0, TAR_FILE},     {'0', TAR_FILE},   {'7', TAR_FILE}, {'1', TAR_HARDLINK}, {'2', TAR_SYMLINK},
               {'3', TAR_DEVICE}, {'4', TAR_DEVICE}, {'5', TAR_DIR},  {'6', TAR_FIFO}};
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
    if (kinds[i].flag == flag) {
      *out = kinds[i].kind;
      if (*out == TAR_FILE && name.n && name.p[name.n - 1] == '/') /* how archives before ustar wrote directories */
        *out = TAR_DIR;
      return 0;
    }
  return err_set(err, -ENOTSUP, "the archive has an entry of type '%c' (" STR_FMT "), which is not supported",
                 flag >= ' ' && flag < 127 ? flag : '?', STR_ARG(str_sub(name, 0, 200)));
}

static int full_name(struct tar *t, struct str *out, struct err *err)
{
  struct str name = field(t->block, 0, 100), prefix = field(t->block, 345, 155);
  if (t->has_name) {
    *out = buf_str(&t->name);
    return 0;
  }
  bool ustar = !memcmp(t->block + 257, "ustar\0", 6);
  buf_clear(&t->name);
  if (ustar && prefix.n) {
    buf_adds(&t->name, prefix);
    buf_addc(&t->name, '/');
  }
  buf_adds(&t->name, name);
  *out = buf_str(&t->name);
  return out->n ? 0 : err_set(err, -EBADMSG, "an entry of the archive has no name");
}

static int begin_content(struct tar *t, enum state state, uint64_t size)
{
  t->left = size;
  t->padding = (unsigned)((BLOCK - size % BLOCK) % BLOCK);
  t->state = state;
  return 0;
}

static int begin_meta(struct tar *t, char kind, uint64_t size, struct err *err)
{
  if (size > TAR_META_MAX)
    return err_set(err, -E2BIG, "an extended header of %llu bytes; at most %zu", (unsigned long long)size,
                   TAR_META_MAX);
  t->meta_kind = kind;
  buf_clear(&t->meta);
  return begin_content(t, META, size);
}

static int after_content(struct tar *t, struct err *err)
{
  int r = 0;
  if (t->in_file) {
    t->in_file = false;
    r = t->ops->end(t->arg);
  } else if (t->state == META) {
    r = meta_done(t, err);
  }
  t->state = t->padding ? PADDING : HEADER;
  return r;
}

static int begin_entry(struct tar *t, uint64_t size, struct err *err)
{
  struct tar_entry e = {.mtime = 0};
  uint64_t mode, mtime = 0;
  int r = full_name(t, &e.name, err);
  r = r ? r : kind_of(t->block[156], e.name, &e.kind, err);
  if (r)
    return r;
  if (number(t->block, 100, 8, &mode) || number(t->block, 108, 8, &e.uid) || number(t->block, 116, 8, &e.gid))
    return err_set(err, -EBADMSG, "a header of the archive has a broken number");
  if (number(t->block, 136, 12, &mtime) == 0)
    e.mtime = (int64_t)MIN(mtime, (uint64_t)INT64_MAX);
  e.link = t->has_link ? buf_str(&t->link) : field(t->block, 157, 100);
  e.mode = (unsigned)mode & 07777;
  e.uid = t->has_uid ? t->uid : e.uid;
  e.gid = t->has_gid ? t->gid : e.gid;
  e.mtime = t->has_mtime ? t->mtime : e.mtime;
  e.size = e.kind == TAR_FILE ? (t->has_size ? t->size : size) : 0;
  e.xattrs = t->xattrs;
  e.nxattrs = t->nxattrs;
  if (e.size > INT64_MAX - BLOCK)
    return err_set(err, -EBADMSG, "an entry of the archive claims %llu bytes", (unsigned long long)e.size);
  t->in_file = e.kind == TAR_FILE;
  r = t->ops->entry(t->arg, &e);
  forget(t);
  begin_content(t, CONTENT, e.size);
  return r || e.size ? r : after_content(t, err);
}

static int header(struct tar *t, struct err *err)
{
  uint64_t size;
  char kind = t->block[156];
  if (all_zero(t->block)) {
    t->state = OVER;
    return 0;
  }
  if (!sum_right(t->block))
    return err_set(err, -EBADMSG, "not a tar archive, or a broken one: a header's checksum is wrong");
  if (number(t->block, 124, 12, &size))
    return err_set(err, -EBADMSG, "a header of the archive has a broken size");
  if (kind != 'x' && kind != 'g' && kind != 'L' && kind != 'K')
    return begin_entry(t, size, err);
  int r = begin_meta(t, kind, size, err);
  return r || size ? r : after_content(t, err);
}

/* ---- feeding ---- */

static int take_block(struct tar *t, struct str *in, struct err *err)
{
  size_t n = MIN(BLOCK - t->have, in->n);
  memcpy(t->block + t->have, in->p, n);
  t->have += n;
  *in = str_skip(*in, n);
  if (t->have < BLOCK)
    return 0;
  t->have = 0;
  return header(t, err);
}

static int take_content(struct tar *t, struct str *in, struct err *err)
{
  struct str piece = str_sub(*in, 0, (size_t)MIN((uint64_t)in->n, t->left));
  *in = str_skip(*in, piece.n);
  t->left -= piece.n;
  int r = t->state == META ? buf_adds(&t->meta, piece) : t->ops->data(t->arg, piece);
  return r || t->left ? r : after_content(t, err);
}

static void take_padding(struct tar *t, struct str *in)
{
  size_t n = MIN((size_t)t->padding, in->n);
  *in = str_skip(*in, n);
  t->padding -= (unsigned)n;
  if (!t->padding)
    t->state = HEADER;
}

int tar_feed(struct tar *t, struct str in, struct err *err)
{
  int r = 0;
  while (!r && in.n) {
    if (t->state == OVER)
      return 0; /* what follows the closing block is padding */
    if (t->state == HEADER)
      r = take_block(t, &in, err);
    else if (t->state == PADDING)
      take_padding(t, &in);
    else
      r = take_content(t, &in, err);
  }
  return r;
}

int tar_finish(struct tar *t, struct err *err)
{
  if (t->state == OVER || (t->state == HEADER && t->have == 0))
    return 0;
  return err_set(err, -EBADMSG, "the archive ends in the middle of an entry");
}
