/* SPDX-License-Identifier: Apache-2.0 */
/* jail_volume_files.c - the list of open files of a checkpoint: sizes and modes go where others may change them. */
#include "jail/checkpoint/volume_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Two regular files, on mounts 300 and 7, and something else. */
static const char on_volume[] = "\x08\x01\x10\x02\x1a\x0d\x08\x01\x32\x01/\x38\xd8\x04\x40\x05\x50\xa4\x03";
static const char loosened[] = "\x08\x01\x10\x02\x1a\x08\x08\x01\x32\x01/\x38\xd8\x04";
static const char elsewhere[] = "\x08\x01\x10\x02\x1a\x0b\x08\x01\x32\x01/\x38\x0e\x40\x05\x50\x01";
static const char other[] = "\x08\x03\x10\x09\x2a\x02\x08\x01";

static void add(struct buf *b, const char *bytes, size_t n)
{
  uint32_t size = (uint32_t)n;
  buf_add(b, &size, sizeof(size));
  buf_add(b, bytes, n);
}

static void only_files_on_these_mounts_are_loosened(void **state)
{
  cleanup_buf struct buf in = BUF_INIT(4096), want = BUF_INIT(4096), out = BUF_INIT(4096);
  const uint64_t mounts[] = {9, 300};
  buf_add(&in, "12345678", 8);
  add(&in, on_volume, sizeof(on_volume) - 1);
  add(&in, elsewhere, sizeof(elsewhere) - 1);
  add(&in, other, sizeof(other) - 1);
  buf_add(&want, "12345678", 8);
  add(&want, loosened, sizeof(loosened) - 1);
  add(&want, elsewhere, sizeof(elsewhere) - 1);
  add(&want, other, sizeof(other) - 1);
  assert_int_equal(volume_files_rewrite(buf_str(&in), mounts, ARRAY_LEN(mounts), &out), 0);
  assert_true(str_eq(buf_str(&out), buf_str(&want)));
}

static void what_is_cut_short_or_changed_is_refused_or_passed_on(void **state)
{
  const uint64_t mount = 300;
  cleanup_buf struct buf in = BUF_INIT(4096);
  buf_add(&in, "12345678", 8);
  add(&in, on_volume, sizeof(on_volume) - 1);
  for (size_t n = 0; n < in.n; n++) {
    cleanup_buf struct buf out = BUF_INIT(4096);
    int r = volume_files_rewrite(str_make(in.p, n), &mount, 1, &out);
    assert_int_equal(r, n == 8 ? 0 : -EBADMSG);
  }
  for (size_t i = 8; i < in.n; i++)
    for (int bit = 0; bit < 8; bit++) {
      cleanup_buf struct buf out = BUF_INIT(4096);
      in.p[i] = (char)(in.p[i] ^ (1 << bit));
      int r = volume_files_rewrite(buf_str(&in), &mount, 1, &out);
      assert_true(r == 0 || r == -EBADMSG);
      in.p[i] = (char)(in.p[i] ^ (1 << bit));
    }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_files_on_these_mounts_are_loosened),
      cmocka_unit_test(what_is_cut_short_or_changed_is_refused_or_passed_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
