/* SPDX-License-Identifier: Apache-2.0 */
/* extract.c - archives put below a directory: whatever they hold, nothing appears or changes beside it.
 *
 * The first byte says how: 1 whiteouts count, 2 the directory is a box's root, 4 the same archive once more as a second
 * layer, on the first; 8 sums of headers are put right before. The rest is the archive, plain, gzip or zstd. Runs below
 * /dev/shm. */
#include "must.h"

#include "unpack/extract.h"
#include "unpack/decompress.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define BYTES   ((uint64_t)4 << 20)
#define ENTRIES 2000
#define WORD    "untouched"

struct unpacking {
  struct tar *tar;
  struct err *err;
};

static int piece(void *arg, struct str in)
{
  struct unpacking *u = arg;
  return tar_feed(u->tar, in, u->err);
}

static int unpack(struct extract *p, struct str in, struct err *err)
{
  struct unpacking u = {tar_new(&extract_ops, p), err};
  struct stream *s = stream_new(piece, &u);
  int r = stream_feed(s, in, err);
  r = r ? r : stream_finish(s, err);
  r = r ? r : tar_finish(u.tar, err);
  stream_free(s);
  tar_free(u.tar);
  return r;
}

/* Sums of a tar's headers put right, so that a changed header is read and not merely refused. */
static void mend(char *p, size_t n)
{
  for (size_t at = 0; at + 512 <= n;) {
    uint64_t size = 0;
    unsigned sum = 0;
    char text[8];
    memset(p + at + 148, ' ', 8);
    for (size_t i = 0; i < 512; i++)
      sum += (unsigned char)p[at + i];
    if (sum == 8 * ' ') {
      memset(p + at + 148, 0, 8);
      at += 512;
      continue;
    }
    snprintf(text, sizeof(text), "%06o", sum & 0777777);
    memcpy(p + at + 148, text, 7);
    for (size_t i = 124; i < 136 && p[at + i] >= '0' && p[at + i] <= '7'; i++)
      size = size * 8 + (uint64_t)(p[at + i] - '0');
    at += 512 + MIN((size + 511) / 512 * 512, (uint64_t)n);
  }
}

/* The directory, its guard beside it, and nothing more. */
static char top[64];

static int prepare(void)
{
  if (!top[0]) {
    snprintf(top, sizeof(top), "/dev/shm/cloche-extract.XXXXXX");
    MUST(mkdtemp(top));
  }
  MUST(mkdir(top, 0700) == 0 || errno == EEXIST);
  int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  MUST(dir >= 0 && mkdirat(dir, "root", 0755) == 0 && mkdirat(dir, "guard", 0755) == 0);
  int fd = openat(dir, "guard/word", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  MUST(fd >= 0 && fd_write_all(fd, WORD, strlen(WORD)) == 0 && close(fd) == 0);
  return dir;
}

static void check(int dir)
{
  char word[sizeof(WORD)] = "";
  struct stat st;
  int fd = openat(dir, "guard/word", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  MUST(fd >= 0 && read(fd, word, sizeof(word)) == (ssize_t)strlen(WORD) && !strcmp(word, WORD));
  MUST(fstat(fd, &st) == 0 && st.st_nlink == 1 && (st.st_mode & 07777) == 0644);
  close(fd);
  MUST(path_remove_tree(dir, "guard") == 0 && path_remove_tree(dir, "root") == 0);
  MUST(close(dir) == 0 && rmdir(top) == 0); /* it was empty */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size < 2)
    return 0;
  struct err err = ERR_NONE;
  struct extract_limits limits = {BYTES, ENTRIES};
  cleanup_free char *copy = xmalloc(size - 1);
  memcpy(copy, data + 1, size - 1);
  struct str in = str_make(copy, size - 1);
  if (data[0] & 8)
    mend(copy, in.n);
  int dir = prepare();
  int root = openat(dir, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  MUST(root >= 0);
  struct extract *p = extract_new(root, &limits, &err);
  if (data[0] & 2)
    extract_guard(p, data[0] & 16);
  int r = 0;
  for (int i = 0; !r && i < (data[0] & 4 ? 2 : 1); i++) {
    extract_layer(p, data[0] & 1);
    r = unpack(p, in, &err);
  }
  r = r ? r : extract_finish(p);
  MUST(r == 0 || err.msg[0]);
  MUST(extract_bytes(p) <= BYTES + (1 << 20));
  extract_free(p);
  close(root);
  check(dir);
  return 0;
}
