/* SPDX-License-Identifier: Apache-2.0 */
/* warden_packets.c - what crosses process borders: packets that are whole or refused, and log rings read while written.
 */
#include "unit.h"

#include "wire/api_key.h"
#include "wire/logring.h"
#include "wire/wire.h"
#include <stdio.h>
#include <sys/mman.h>

static void fields_are_read_back_as_written(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_BOX_GET, 42, -7);
  wire_putz(&b, W_ID, "iabc");
  wire_put_u64(&b, W_TIMEOUT, 300);
  wire_put(&b, W_CONFIG, STR(""));
  struct str p = buf_str(&b);
  assert_int_equal(wire_check(p), 0);
  assert_int_equal(wire_head(p)->id, 42);
  assert_int_equal(wire_head(p)->status, -7);
  assert_true(str_is(wire_get(p, W_ID), "iabc"));
  assert_int_equal(wire_u64(p, W_TIMEOUT, 0), 300);
  assert_non_null(wire_get(p, W_CONFIG).p);
  assert_null(wire_get(p, W_TEAM).p);
  assert_int_equal(wire_u64(p, W_ID, 9), 9);
  char small[4];
  assert_int_equal(wire_copyz(p, W_ID, small, sizeof(small)), -ENAMETOOLONG);
}

/* Every cut and many changed bytes: refused, or read without touching a byte outside. */
static void broken_packets_are_refused_or_read_inside_their_bounds(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_BOX_CREATE, 1, 0);
  wire_putz(&b, W_ID, "i0123456789");
  wire_put_u64(&b, W_FLAGS, 3);
  wire_putz(&b, W_CONFIG, "{\"metadata\":{}}");
  uint64_t dice = 1234567;
  for (size_t cut = 0; cut <= b.n; cut++) {
    char *copy = malloc(cut ? cut : 1); /* its own block, so that a sanitizer sees the edge */
    memcpy(copy, b.p, cut);
    struct str p = {copy, cut};
    if (!wire_check(p))
      assert_true(wire_get(p, W_CONFIG).n <= cut);
    free(copy);
  }
  for (int i = 0; i < 20000; i++) {
    char *copy = malloc(b.n);
    memcpy(copy, b.p, b.n);
    for (int k = 0; k < 3; k++) {
      dice = dice * 6364136223846793005u + 1442695040888963407u;
      copy[(dice >> 33) % b.n] = (char)(dice >> 17);
    }
    struct str p = {copy, b.n};
    if (!wire_check(p)) {
      struct str v = wire_get(p, W_CONFIG);
      assert_true(!v.p || (v.p >= copy && v.p + v.n <= copy + b.n));
    }
    free(copy);
  }
}

static void tokens_differ_by_box_kind_and_secret(void **state)
{
  char a[TOKEN_TEXT], b[TOKEN_TEXT], c[TOKEN_TEXT], d[TOKEN_TEXT], again[TOKEN_TEXT];
  token_make(STR("secret"), TOKEN_ACCESS, STR("i1"), a);
  token_make(STR("secret"), TOKEN_ACCESS, STR("i2"), b);
  token_make(STR("secret"), TOKEN_TRAFFIC, STR("i1"), c);
  token_make(STR("other"), TOKEN_ACCESS, STR("i1"), d);
  token_make(STR("secret"), TOKEN_ACCESS, STR("i1"), again);
  assert_string_equal(a, again);
  assert_string_not_equal(a, b);
  assert_string_not_equal(a, c);
  assert_string_not_equal(a, d);
  assert_int_equal(strlen(a), 64);
}

/* ---- log rings ---- */

struct ring {
  int fd;
  struct logring_head head;
};

static void ring_open(struct ring *r, uint64_t size)
{
  r->fd = memfd_create("ring", MFD_CLOEXEC);
  r->head = (struct logring_head){.magic = LOGRING_MAGIC, .size = size};
  assert_int_equal(pwrite(r->fd, &r->head, sizeof(r->head), 0), sizeof(r->head));
}

static void ring_write(struct ring *r, const char *text)
{
  for (const char *p = text; *p; p++, r->head.written++)
    assert_int_equal(pwrite(r->fd, p, 1, (off_t)(LOGRING_HEAD + r->head.written % r->head.size)), 1);
  assert_int_equal(pwrite(r->fd, &r->head, sizeof(r->head), 0), sizeof(r->head));
}

static void reads(struct ring *r, size_t most, const char *wanted)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  assert_int_equal(logring_read(r->fd, most, &b), 0);
  assert_string_equal(buf_z(&b), wanted);
}

static void a_ring_gives_whole_lines_oldest_first(void **state)
{
  struct ring r;
  ring_open(&r, 16);
  reads(&r, 1000, "");
  ring_write(&r, "one\ntwo\n");
  reads(&r, 1000, "one\ntwo\n");
  reads(&r, 5, "two\n");
  ring_write(&r, "three\nfour\n");
  reads(&r, 1000, "two\nthree\nfour\n");
  ring_write(&r, "half a li");
  reads(&r, 1000, "four\n");
  close(r.fd);
}

static void nonsense_is_no_ring(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  struct ring r;
  ring_open(&r, 16);
  const struct logring_head bad[] = {{.magic = "CLOCHLOX", .size = 16},
                                     {.magic = LOGRING_MAGIC, .size = 0},
                                     {.magic = LOGRING_MAGIC, .size = UINT64_MAX}};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    assert_int_equal(pwrite(r.fd, &bad[i], sizeof(bad[i]), 0), sizeof(bad[i]));
    assert_int_equal(logring_read(r.fd, 1000, &b), -EINVAL);
  }
  const struct logring_head lies = {.magic = LOGRING_MAGIC, .size = 4096, .written = UINT64_MAX};
  assert_int_equal(pwrite(r.fd, &lies, sizeof(lies), 0), sizeof(lies));
  logring_read(r.fd, SIZE_MAX, &b);
  assert_int_equal(ftruncate(r.fd, 3), 0);
  assert_int_equal(logring_read(r.fd, 1000, &b), -EINVAL);
  close(r.fd);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fields_are_read_back_as_written),
      cmocka_unit_test(broken_packets_are_refused_or_read_inside_their_bounds),
      cmocka_unit_test(tokens_differ_by_box_kind_and_secret),
      cmocka_unit_test(a_ring_gives_whole_lines_oldest_first),
      cmocka_unit_test(nonsense_is_no_ring),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
