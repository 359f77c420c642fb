/* SPDX-License-Identifier: Apache-2.0 */
/* decompress.c - see decompress.h. The windows are bounded by zlib's format and by WINDOW_LOG for zstd. */
#include "unpack/decompress.h"

#include <zlib.h>
#include <zstd.h>

#define PIECE      ((size_t)128 << 10)
#define WINDOW_LOG 27 /* 128 MiB: what `zstd --ultra` writes at most without --long */

enum kind { UNKNOWN, PLAIN, GZIP, ZSTD };

struct stream {
  int (*out)(void *arg, struct str piece);
  void *arg;
  enum kind kind;
  char head[4];
  size_t nhead;
  bool whole; /* where a member ended */
  z_stream z;
  ZSTD_DCtx *zstd;
  char piece[PIECE];
};

struct stream *stream_new(int (*out)(void *arg, struct str piece), void *arg)
{
  struct stream *s = xcalloc(1, sizeof(*s));
  s->out = out;
  s->arg = arg;
  s->whole = true;
  return s;
}

void stream_free(struct stream *s)
{
  if (!s)
    return;
  if (s->kind == GZIP)
    inflateEnd(&s->z);
  ZSTD_freeDCtx(s->zstd);
  free(s);
}

static int begin(struct stream *s, struct err *err)
{
  s->kind = PLAIN;
  if (s->nhead >= 2 && !memcmp(s->head, "\x1f\x8b", 2)) {
    if (inflateInit2(&s->z, 16 + MAX_WBITS) != Z_OK)
      return err_set(err, -ENOMEM, "out of memory for gzip decompression");
    s->kind = GZIP;
  } else if (s->nhead == 4 && !memcmp(s->head, "\x28\xb5\x2f\xfd", 4)) {
    s->zstd = ZSTD_createDCtx();
    if (!s->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, WINDOW_LOG)))
      return err_set(err, -ENOMEM, "out of memory for zstd decompression");
    s->kind = ZSTD;
  }
  return 0;
}

static int feed_gzip(struct stream *s, struct str in, struct err *err)
{
  s->z.next_in = (Bytef *)(uintptr_t)in.p;
  s->z.avail_in = (uInt)in.n;
  int r = 0;
  do {
    if (s->whole && s->z.total_in && s->z.avail_in)
      inflateReset(&s->z); /* members that follow each other are one stream */
    s->z.next_out = (Bytef *)s->piece;
    s->z.avail_out = PIECE;
    int rc = inflate(&s->z, Z_NO_FLUSH);
    if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
      return err_set(err, -EBADMSG, "the gzip data is broken");
    s->whole = rc == Z_STREAM_END;
    size_t n = PIECE - s->z.avail_out;
    r = n ? s->out(s->arg, str_make(s->piece, n)) : 0;
  } while (!r && (s->z.avail_in || !s->z.avail_out));
  return r;
}

static int feed_zstd(struct stream *s, struct str in, struct err *err)
{
  ZSTD_inBuffer from = {in.p, in.n, 0};
  bool more = false;
  while (from.pos < from.size || more) {
    ZSTD_outBuffer to = {s->piece, PIECE, 0};
    size_t left = ZSTD_decompressStream(s->zstd, &to, &from);
    if (ZSTD_isError(left))
      return err_set(err, -EBADMSG, "the zstd data is broken: %s", ZSTD_getErrorName(left));
    s->whole = left == 0;
    more = to.pos == to.size;
    int r = to.pos ? s->out(s->arg, str_make(s->piece, to.pos)) : 0;
    if (r)
      return r;
  }
  return 0;
}

static int pass(struct stream *s, struct str in, struct err *err)
{
  if (!in.n)
    return 0;
  if (s->kind == GZIP)
    return feed_gzip(s, in, err);
  return s->kind == ZSTD ? feed_zstd(s, in, err) : s->out(s->arg, in);
}

int stream_feed(struct stream *s, struct str in, struct err *err)
{
  int r = 0;
  while (s->kind == UNKNOWN && in.n) {
    s->head[s->nhead++] = in.p[0];
    in = str_skip(in, 1);
    if (s->nhead < sizeof(s->head))
      continue;
    r = begin(s, err);
    r = r ? r : pass(s, str_make(s->head, s->nhead), err);
  }
  return r ? r : pass(s, in, err);
}

int stream_finish(struct stream *s, struct err *err)
{
  int r = 0;
  if (s->kind == UNKNOWN && s->nhead) {
    r = begin(s, err);
    r = r ? r : pass(s, str_make(s->head, s->nhead), err);
  }
  return r || s->whole ? r : err_set(err, -EBADMSG, "the compressed data ends too early");
}
