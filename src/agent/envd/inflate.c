/* SPDX-License-Identifier: Apache-2.0 */
/* inflate.c - see inflate.h. */
#include "agent/envd/inflate.h"
#include <zlib.h>

#define PIECE     ((size_t)64 << 10)
#define GZIP_ONLY (16 + MAX_WBITS)

struct inflate {
  z_stream z;
  bool ended, begun; /* begun: the header was read and good */
  char out[PIECE];
};

struct inflate *inflate_new(void)
{
  struct inflate *z = calloc(1, sizeof(*z));
  if (z && inflateInit2(&z->z, GZIP_ONLY) != Z_OK) {
    free(z);
    return NULL;
  }
  return z;
}

void inflate_free(struct inflate *z)
{
  if (!z)
    return;
  inflateEnd(&z->z);
  free(z);
}

static int step(struct inflate *z, int (*fn)(void *arg, struct str out), void *arg)
{
  if (z->ended) {
    inflateReset(&z->z);
    z->ended = false;
  }
  z->z.next_out = (Bytef *)z->out;
  z->z.avail_out = PIECE;
  int rc = inflate(&z->z, Z_NO_FLUSH);
  if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
    return z->begun ? -EIO : -EBADMSG;
  size_t n = PIECE - z->z.avail_out;
  z->begun |= n > 0 || z->z.total_in > 18;
  z->ended = rc == Z_STREAM_END;
  return n ? fn(arg, str_make(z->out, n)) : 0;
}

int inflate_feed(struct inflate *z, struct str in, int (*fn)(void *arg, struct str out), void *arg)
{
  z->z.next_in = (Bytef *)in.p;
  z->z.avail_in = (uInt)in.n;
  int rc = 0;
  do
    rc = step(z, fn, arg);
  while (rc == 0 && (z->z.avail_in > 0 || (z->z.avail_out == 0 && !z->ended)));
  return rc;
}

bool inflate_whole(const struct inflate *z)
{
  return z->ended;
}
