/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_archive.c - archives written and read again, cut anywhere, packed any way; the JSON of images. */
#include "unit.h"

#include "unpack/oci_image.h"
#include "unpack/decompress.h"
#include "unpack/tar_write.h"
#include <stdio.h>
#include <zlib.h>

struct seen {
  struct buf text;
};

static int on_entry(void *arg, const struct tar_entry *e)
{
  struct seen *s = arg;
  buf_addf(&s->text, "%d %o %llu:%llu %lld ", e->kind, e->mode, (unsigned long long)e->uid, (unsigned long long)e->gid,
           (long long)e->mtime);
  buf_adds(&s->text, e->name);
  buf_addc(&s->text, '>');
  buf_adds(&s->text, e->link);
  for (size_t i = 0; i < e->nxattrs; i++)
    buf_addf(&s->text, " %s=" STR_FMT, e->xattrs[2 * i].p, STR_ARG(e->xattrs[2 * i + 1]));
  return buf_addc(&s->text, '\n');
}

static int on_data(void *arg, struct str piece)
{
  return buf_adds(&((struct seen *)arg)->text, piece);
}

static int on_end(void *arg)
{
  return buf_addc(&((struct seen *)arg)->text, '.');
}

static const struct tar_ops ops = {on_entry, on_data, on_end};

static int read_all(struct str in, size_t piece, struct seen *s, struct err *err)
{
  struct tar *t = tar_new(&ops, s);
  int r = 0;
  for (size_t at = 0; !r && at < in.n; at += piece)
    r = tar_feed(t, str_sub(in, at, piece), err);
  r = r ? r : tar_finish(t, err);
  tar_free(t);
  return r;
}

static void write_some(struct buf *out)
{
  static char long_name[301];
  memset(long_name, 'n', 300);
  struct str xattrs[] = {STR("user.colour"), STR("blue\n")};
  const struct tar_entry list[] = {
      {.kind = TAR_DIR, .name = STR("dir/"), .mode = 01777, .mtime = 5},
      {.kind = TAR_FILE,
       .name = STR("dir/file"),
       .size = 5,
       .mode = 04755,
       .uid = 3000000,
       .gid = 7,
       .xattrs = xattrs,
       .nxattrs = 1},
      {.kind = TAR_FILE, .name = str_of(long_name), .mode = 0600},
      {.kind = TAR_SYMLINK, .name = STR("link"), .link = str_of(long_name), .mode = 0777},
      {.kind = TAR_HARDLINK, .name = STR("hard"), .link = STR("dir/file")},
      {.kind = TAR_FIFO, .name = STR("pipe"), .mode = 0644},
  };
  for (size_t i = 0; i < ARRAY_LEN(list); i++) {
    assert_int_equal(tar_write_header(out, &list[i]), 0);
    if (list[i].size)
      buf_addz(out, "hello");
    tar_write_pad(out, list[i].size);
  }
  tar_write_end(out);
}

static void what_is_written_is_read_again_in_any_pieces(void **state)
{
  cleanup_buf struct buf archive = BUF_INIT(1 << 20);
  struct seen first = {BUF_INIT(1 << 20)};
  struct err err;
  write_some(&archive);
  assert_int_equal(read_all(buf_str(&archive), archive.n, &first, &err), 0);
  assert_true(str_search(buf_str(&first.text), STR("1 4755 3000000:7 0 dir/file> user.colour=blue\n\nhello.")) >= 0);
  assert_true(str_search(buf_str(&first.text), STR("4 0 0:0 0 hard>dir/file\n")) >= 0);
  for (size_t piece = 1; piece < 1100; piece += 97) {
    struct seen again = {BUF_INIT(1 << 20)};
    assert_int_equal(read_all(buf_str(&archive), piece, &again, &err), 0);
    assert_true(str_eq(buf_str(&first.text), buf_str(&again.text)));
    buf_free(&again.text);
  }
  buf_free(&first.text);
}

static void a_broken_or_cut_archive_is_refused(void **state)
{
  cleanup_buf struct buf archive = BUF_INIT(1 << 20);
  struct err err;
  write_some(&archive);
  for (size_t cut = 1; cut < 2048; cut += 61) {
    struct seen s = {BUF_INIT(1 << 20)};
    int r = read_all(str_make(archive.p, cut), 512, &s, &err);
    assert_true(cut % 512 == 0 || r == -EBADMSG);
    buf_free(&s.text);
  }
  struct seen s = {BUF_INIT(1 << 20)};
  archive.p[2]++;
  assert_int_equal(read_all(buf_str(&archive), 512, &s, &err), -EBADMSG);
  assert_non_null(strstr(err.msg, "checksum"));
  buf_free(&s.text);
}

static int collect(void *arg, struct str piece)
{
  return buf_adds(arg, piece);
}

static int unpacked(struct str in, size_t piece, struct buf *out)
{
  struct err err;
  struct stream *s = stream_new(collect, out);
  int r = 0;
  for (size_t at = 0; !r && at < in.n; at += piece)
    r = stream_feed(s, str_sub(in, at, piece), &err);
  r = r ? r : stream_finish(s, &err);
  stream_free(s);
  return r;
}

static void gzip_is_undone_and_a_cut_is_seen(void **state)
{
  static const char text[] = "words words words words words";
  Bytef packed[200];
  z_stream z = {0};
  assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = (Bytef *)(uintptr_t)text;
  z.avail_in = sizeof(text);
  z.next_out = packed;
  z.avail_out = sizeof(packed);
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  size_t n = sizeof(packed) - z.avail_out;
  deflateEnd(&z);
  for (size_t piece = 1; piece <= n; piece++) {
    cleanup_buf struct buf out = BUF_INIT(1000);
    assert_int_equal(unpacked(str_make(packed, n), piece, &out), 0);
    assert_true(str_eq(buf_str(&out), str_make(text, sizeof(text))));
  }
  cleanup_buf struct buf cut = BUF_INIT(1000), plain = BUF_INIT(1000);
  assert_int_equal(unpacked(str_make(packed, n - 3), 7, &cut), -EBADMSG);
  assert_int_equal(unpacked(STR("abc"), 1, &plain), 0);
  assert_true(str_is(buf_str(&plain), "abc"));
}

#define DIGEST "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void only_whole_digests_are_taken_from_an_image(void **state)
{
  struct err err;
  char digest[65];
  assert_int_equal(image_index(STR("{\"manifests\":[{\"digest\":\"" DIGEST "\"}]}"), digest, &err), 0);
  assert_int_equal(strlen(digest), 64);
  static const char *const bad[] = {"{\"manifests\":[{\"digest\":\"sha256:../../etc/passwd\"}]}",
                                    "{\"manifests\":[{\"digest\":\"md5:aa\"}]}",
                                    "{\"manifests\":[]}",
                                    "[]",
                                    "nonsense",
                                    "{\"manifests\":[{\"digest\":\"" DIGEST "\"},{\"digest\":\"" DIGEST "\"}]}"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(image_index(str_of(bad[i]), digest, &err), -EBADMSG);
}

static void a_foreign_image_is_refused_by_name(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  char(*diffs)[65];
  size_t n;
  struct err err;
  assert_int_equal(image_config(&a, STR("{\"os\":\"windows\",\"rootfs\":{\"diff_ids\":[]}}"), &out, &diffs, &n, &err),
                   -ENOEXEC);
  assert_non_null(strstr(err.msg, "windows"));
  assert_int_equal(
      image_config(&a, STR("{\"config\":{\"Env\":[\"A=1\",\"=x\",\"B\"]},\"rootfs\":{\"diff_ids\":[\"" DIGEST "\"]}}"),
                   &out, &diffs, &n, &err),
      0);
  assert_int_equal(n, 1);
  assert_true(str_starts(buf_str(&out), STR("{\"env\":{\"A\":\"1\",\"B\":\"\"},\"user\":\"\"")));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read_again_in_any_pieces),
      cmocka_unit_test(a_broken_or_cut_archive_is_refused),
      cmocka_unit_test(gzip_is_undone_and_a_cut_is_seen),
      cmocka_unit_test(only_whole_digests_are_taken_from_an_image),
      cmocka_unit_test(a_foreign_image_is_refused_by_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
