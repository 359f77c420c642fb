/* SPDX-License-Identifier: Apache-2.0 */
/* compress.c - see compress.h. */
#include "jail/checkpoint/compress.h"
#include "jail/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <zstd.h>

#define PIECE     ((size_t)256 << 10)
#define NAME_MAX_ 80
#define TAIL      ".zst"

static int packed_name(char out[NAME_MAX_], const char *name, struct err *err)
{
  if ((size_t)snprintf(out, NAME_MAX_, "%s" TAIL, name) < NAME_MAX_)
    return 0;
  return err_set(err, -ENAMETOOLONG, "path too long: %s", name);
}

static bool is_memory(const struct manifest_entry *i)
{
  return str_starts(str_of(i->name), STR(MANIFEST_MEMORY));
}

bool compressed_any(const struct manifest *m)
{
  for (size_t i = 0; i < m->entries.n; i++)
    if (m->entries.p[i].packed)
      return true;
  return false;
}

/* --- there ---------------------------------------------------------------------------------------------------- */

static void free_cctx(ZSTD_CCtx **c)
{
  ZSTD_freeCCtx(*c);
}

struct packing {
  ZSTD_CCtx *zstd;
  int from, to;
  char *in, *out;
  uint64_t bytes; /* of the packed file */
};

/* One stretch of the file; `n` 0: its end. */
static int pack_piece(struct packing *p, size_t n)
{
  ZSTD_inBuffer in = {p->in, n, 0};
  for (bool over = false; !over;) {
    ZSTD_outBuffer out = {p->out, PIECE, 0};
    size_t left = ZSTD_compressStream2(p->zstd, &out, &in, n ? ZSTD_e_continue : ZSTD_e_end);
    if (ZSTD_isError(left))
      return -EIO;
    int r = fd_write_all(p->to, p->out, out.pos);
    if (r)
      return r;
    p->bytes += out.pos;
    over = n ? in.pos == in.size : left == 0;
  }
  return 0;
}

static int pack_all(struct packing *p, const atomic_bool *stop)
{
  for (;;) {
    if (atomic_load(stop))
      return -ECANCELED;
    ssize_t n = read(p->from, p->in, PIECE);
    if (n < 0 && errno == EINTR)
      continue;
    int r = n < 0 ? -errno : pack_piece(p, (size_t)n);
    if (r || !n)
      return r;
  }
}

static int pack_file(int dir, const char *name, int level, const atomic_bool *stop, uint64_t *bytes, struct err *err)
{
  char packed[NAME_MAX_];
  cleanup_free char *in = xmalloc(PIECE), *out = xmalloc(PIECE);
  __attribute__((cleanup(free_cctx))) ZSTD_CCtx *zstd = ZSTD_createCCtx();
  if (!zstd || ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, level)) ||
      ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1)))
    return err_set(err, -ENOMEM, "no memory to pack a checkpoint");
  int r = packed_name(packed, name, err);
  if (r)
    return r;
  cleanup_fd int from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  cleanup_fd int to = openat(dir, packed, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (from < 0 || to < 0)
    return err_errno(err, "packing %s", name);
  struct packing p = {.zstd = zstd, .from = from, .to = to, .in = in, .out = out};
  r = pack_all(&p, stop);
  if (!r && fsync(to))
    r = -errno;
  *bytes = p.bytes;
  return r ? err_set(err, r, "packing %s: %s", name, strerrordesc_np(-r)) : 0;
}

static void drop_packed(int dir, const struct manifest *m)
{
  for (size_t i = 0; i < m->entries.n; i++) {
    char packed[NAME_MAX_];
    if (is_memory(&m->entries.p[i]) && !packed_name(packed, m->entries.p[i].name, NULL))
      unlinkat(dir, packed, 0);
  }
}

/* What hardly shrinks stays as it is: it is quicker to read. */
static int pack_one(int dir, struct manifest_entry *i, int level, const atomic_bool *stop, bool *any, struct err *err)
{
  char packed[NAME_MAX_];
  uint64_t bytes = 0;
  int r = pack_file(dir, i->name, level, stop, &bytes, err);
  if (!r && bytes < i->size - i->size / 8) {
    i->packed = bytes;
    *any = true;
  } else if (!packed_name(packed, i->name, NULL)) {
    unlinkat(dir, packed, 0);
  }
  return r;
}

int jail_checkpoint_compress(const char *checkpoint, int level, const atomic_bool *stop, struct err *err)
{
  cleanup_manifest struct manifest m = MANIFEST_INIT;
  cleanup_fd int dir = open(checkpoint, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int r = dir < 0 ? err_errno(err, "opening the checkpoint %s", checkpoint) : manifest_read(dir, &m, err);
  if (r)
    return r;
  bool any = false;
  if (compressed_any(&m)) { /* done before; the last steps may have been cut short */
    compressed_restore(dir, &m);
    return 0;
  }
  for (size_t i = 0; i < m.entries.n && !r; i++)
    if (is_memory(&m.entries.p[i]))
      r = pack_one(dir, &m.entries.p[i], level, stop, &any, err);
  if (!r && any)
    r = manifest_write(dir, &m, false, err);
  if (r)
    drop_packed(dir, &m);
  else
    compressed_restore(dir, &m);
  return r;
}

/* --- back ----------------------------------------------------------------------------------------------------- */

static void free_dctx(ZSTD_DCtx **c)
{
  ZSTD_freeDCtx(*c);
}

struct unpacking {
  ZSTD_DCtx *zstd;
  int to; /* -1: it is only looked at */
  uint64_t size;
  uint32_t sum;
  bool whole;
};

static int unpack_piece(struct unpacking *u, const char *bytes, size_t n, char *room)
{
  ZSTD_inBuffer in = {bytes, n, 0};
  bool more = true;
  while (in.pos < in.size || more) {
    ZSTD_outBuffer out = {room, PIECE, 0};
    size_t left = ZSTD_decompressStream(u->zstd, &out, &in);
    if (ZSTD_isError(left))
      return -EBADMSG;
    u->whole = left == 0;
    more = out.pos == out.size && !u->whole; /* asked once more after its end, it would wait for another frame */
    u->size += out.pos;
    u->sum = crc32c(u->sum, room, out.pos);
    int r = u->to < 0 ? 0 : fd_write_all(u->to, room, out.pos);
    if (r)
      return r;
  }
  return 0;
}

static int unpack_all(struct unpacking *u, int from)
{
  cleanup_free char *bytes = xmalloc(PIECE), *room = xmalloc(PIECE);
  for (;;) {
    ssize_t n = read(from, bytes, PIECE);
    if (n < 0 && errno == EINTR)
      continue;
    int r = n < 0 ? -errno : n ? unpack_piece(u, bytes, (size_t)n, room) : 0;
    if (r || !n)
      return r;
  }
}

static int unpack_file(int dir, const struct manifest_entry *i, bool keep, struct err *err)
{
  char packed[NAME_MAX_];
  struct stat st;
  __attribute__((cleanup(free_dctx))) ZSTD_DCtx *zstd = ZSTD_createDCtx();
  int r = zstd ? packed_name(packed, i->name, err) : err_set(err, -ENOMEM, "no memory to unpack a checkpoint");
  if (r)
    return r;
  cleanup_fd int from = openat(dir, packed, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (from < 0 || fstat(from, &st))
    return err_set(err, -EBADMSG, "the checkpoint is damaged: %s is missing", packed);
  if ((uint64_t)st.st_size != i->packed)
    return err_set(err, -EBADMSG, "the checkpoint is damaged: %s has another size than when it was written", packed);
  cleanup_fd int to = keep ? openat(dir, i->name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
  if (keep && to < 0)
    return err_errno(err, "unpacking %s", i->name);
  struct unpacking u = {.zstd = zstd, .to = to};
  r = unpack_all(&u, from);
  if (r && r != -EBADMSG)
    return err_set(err, r, "unpacking %s: %s", i->name, strerrordesc_np(-r));
  if (r || !u.whole || u.size != i->size || u.sum != i->sum)
    return err_set(err, -EBADMSG, "the checkpoint is damaged: %s does not match its checksum", packed);
  return 0;
}

static int unpack_each(int dir, const struct manifest *m, bool keep, struct err *err)
{
  int r = 0;
  for (size_t i = 0; i < m->entries.n && !r; i++)
    if (m->entries.p[i].packed)
      r = unpack_file(dir, &m->entries.p[i], keep, err);
  return r;
}

int decompress_all(int dir, const struct manifest *m, struct err *err)
{
  return unpack_each(dir, m, true, err);
}

int compressed_check(int dir, const struct manifest *m, struct err *err)
{
  return unpack_each(dir, m, false, err);
}

void compressed_restore(int dir, const struct manifest *m)
{
  for (size_t i = 0; i < m->entries.n; i++)
    if (m->entries.p[i].packed)
      unlinkat(dir, m->entries.p[i].name, 0);
}
