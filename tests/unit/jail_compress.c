/* SPDX-License-Identifier: Apache-2.0 */
/* jail_compress.c - files of memory on the way to their packed form and back, at the edges of what is read at once. */
#include "unit.h"

#include "jail/checkpoint/checkpoint.h"
#include "jail/checkpoint/compress.h"
#include <fcntl.h>
#include <stdio.h>

#define PIECE ((size_t)256 << 10) /* as compress.c reads and writes */

/* Shrinks to about a half: every other run of 64 bytes is zeros, the rest differs. */
static void fill(char *bytes, size_t n)
{
  uint32_t x = 1;
  for (size_t i = 0; i < n; i++) {
    x = x * 1664525 + 1013904223;
    bytes[i] = (i / 64) % 2 ? (char)(x >> 24) : 0;
  }
}

static void write_file(int dir, const char *name, const char *bytes, size_t n)
{
  cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(fd_write_all(fd, bytes, n), 0);
}

static void assert_file(int dir, const char *name, const char *bytes, size_t n)
{
  cleanup_free char *back = xmalloc(n + 1);
  cleanup_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  size_t got = 0;
  for (ssize_t r; got <= n && (r = read(fd, back + got, n + 1 - got)) > 0;)
    got += (size_t)r;
  assert_int_equal(got, n);
  assert_memory_equal(back, bytes, n);
}

static void there_and_back(size_t n, const char *bytes)
{
  char home[] = "/tmp/cloche-unit-compress.XXXXXX";
  atomic_bool stop = false;
  struct err err = {0};
  assert_non_null(mkdtemp(home));
  cleanup_fd int dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  write_file(dir, "pages-1.img", bytes, n);
  cleanup_manifest struct manifest sealed = MANIFEST_INIT, m = MANIFEST_INIT;
  assert_int_equal(manifest_seal(dir, &sealed, false, &err), 0);
  assert_int_equal(jail_checkpoint_compress(home, 3, &stop, &err), 0);
  assert_int_equal(manifest_read(dir, &m, &err), 0);
  assert_true(compressed_any(&m));
  assert_int_equal(faccessat(dir, "pages-1.img", F_OK, 0), -1);
  assert_int_equal(compressed_check(dir, &m, &err), 0);
  assert_int_equal(decompress_all(dir, &m, &err), 0);
  assert_file(dir, "pages-1.img", bytes, n);
  cleanup_fd int packed = openat(dir, "pages-1.img.zst", O_RDWR | O_CLOEXEC);
  assert_int_equal(ftruncate(packed, (off_t)m.entries.p[0].packed - 1), 0);
  assert_int_equal(compressed_check(dir, &m, &err), -EBADMSG);
  m.entries.p[0].packed--; /* cut short, and its size rewritten to match */
  assert_int_equal(compressed_check(dir, &m, &err), -EBADMSG);
  for (size_t i = 0; i < 3; i++)
    unlinkat(dir, (const char *const[]){"pages-1.img", "pages-1.img.zst", MANIFEST_NAME}[i], 0);
  assert_int_equal(rmdir(home), 0);
}

static void images_of_any_size_come_back_whole(void **state)
{
  const size_t sizes[] = {4096, PIECE - 4096, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE - 1, 4 * PIECE};
  cleanup_free char *bytes = xmalloc(4 * PIECE);
  fill(bytes, 4 * PIECE);
  for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
    there_and_back(sizes[i], bytes);
  memset(bytes, 0, 4 * PIECE); /* one piece of input that becomes many of output */
  for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
    there_and_back(sizes[i], bytes);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(images_of_any_size_come_back_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
