/* SPDX-License-Identifier: Apache-2.0 */
/* compressed_file.c - see compressed_file.h. */
#include "cli/compressed_file.h"

#include <sys/sysinfo.h>
#include <zlib.h>
#include <zstd.h>

#define LEVEL       3
#define WORKERS_MAX 8

struct pack {
  int fd;
  gzFile gzip; /* it owns fd then */
  ZSTD_CCtx *zstd;
  size_t size;
  char out[];
};

struct pack *pack_new(int fd, bool gzip)
{
  struct pack *p = xcalloc(1, sizeof(*p) + ZSTD_CStreamOutSize());
  p->fd = fd;
  p->size = ZSTD_CStreamOutSize();
  if (gzip)
    p->gzip = gzdopen(fd, "wb3");
  else
    p->zstd = ZSTD_createCCtx();
  if (!p->gzip && !p->zstd) {
    close(fd);
    free(p);
    return NULL;
  }
  if (p->zstd) {
    ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_nbWorkers,
                           MIN(get_nprocs(), WORKERS_MAX)); /* a library without threads refuses, and works alone */
  }
  return p;
}

static int pass(struct pack *p, struct str in, ZSTD_EndDirective how)
{
  ZSTD_inBuffer from = {in.p, in.n, 0};
  for (;;) {
    ZSTD_outBuffer to = {p->out, p->size, 0};
    size_t left = ZSTD_compressStream2(p->zstd, &to, &from, how);
    if (ZSTD_isError(left) || fd_write_all(p->fd, p->out, to.pos))
      return -EIO;
    if (how == ZSTD_e_end ? left == 0 : from.pos == from.size)
      return 0;
  }
}

int pack_put(struct pack *p, struct str in)
{
  if (!in.n)
    return 0;
  if (p->gzip)
    return gzwrite(p->gzip, in.p, (unsigned)in.n) == (int)in.n ? 0 : -EIO;
  return pass(p, in, ZSTD_e_continue);
}

int pack_finish(struct pack *p)
{
  if (!p)
    return 0;
  int r;
  if (p->gzip) {
    r = gzclose(p->gzip) == Z_OK ? 0 : -EIO;
  } else {
    r = pass(p, STR_NONE, ZSTD_e_end);
    r = close(p->fd) ? -EIO : r;
  }
  ZSTD_freeCCtx(p->zstd);
  free(p);
  return r;
}
