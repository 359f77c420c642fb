/* SPDX-License-Identifier: Apache-2.0 */
/* What /files needs to know: signatures, multipart bodies, ranges, names, encodings, metadata, paths. */
#include "unit.h"

#include "agent/agent.h"
#include "agent/envd/entry.h"
#include "agent/env.h"
#include "agent/envd/files.h"
#include "agent/envd/http_fields.h"
#include "agent/envd/inflate.h"
#include "agent/envd/metadata.h"
#include "agent/envd/multipart.h"
#include "agent/envd/resolve.h"
#include <sys/stat.h>
#include <zlib.h>

#define TOKEN "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"

/* ---- signatures ---- */

static void signatures_are_the_published_ones(void **state)
{
  static const struct {
    const char *path, *operation, *user, *expiration, *signature;
  } rows[] = {
      {"hello.txt", "read", "user", NULL, "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E"},
      {"hello.txt", "read", "", NULL, "v1_SnvZASdG5vD8p9rpaldX3434NfwgRVsYsvzCBL6oZbc"},
      {"hello.txt", "write", "user", NULL, "v1_yRl2q986FTmG+X/CM1wXMYT/fIInxXt4yqfqJnajTME"},
      {"hello.txt", "write", "root", "1893456000", "v1_Fza0VO/lr/kE0PaXhs/n1kz/jO2+/aB6vpUDh0WhVWI"},
      {"hello.txt", "read", "", "1893456000", "v1_q0vVa0nk47kw5OesAQqMK/IymKpbbV61em9n1CFuyks"},
      {"", "write", "", NULL, "v1_+Ndakv8aCLGD5gjOtfiA7J8PrN3cGaRiZZq/4vOYGKA"},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char out[SIGNATURE_TEXT];
    files_sign(str_of(rows[i].path), rows[i].operation, str_of(rows[i].user), STR(TOKEN), str_of(rows[i].expiration),
               rows[i].expiration != NULL, out);
    assert_string_equal(out, rows[i].signature);
  }
}

static const char *refusal(const char *query, const char *operation, const char *header, int64_t now)
{
  cleanup_files_query struct files_query q;
  assert_int_equal(files_query_parse(str_of(query), &q), 0);
  return files_refuse(&q, operation, TOKEN, str_of(header), now);
}

#define SIGNED "path=hello.txt&username=user&signature=v1_gUtH%2Fs9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E"
#define TIMED                                                                                                          \
  "path=hello.txt&signature=v1_q0vVa0nk47kw5OesAQqMK%2FIymKpbbV61em9n1CFuyks&signature_expiration=1893456000"

static void a_signature_opens_only_what_it_was_made_for(void **state)
{
  assert_null(refusal(SIGNED, "read", NULL, 0));
  assert_string_equal(refusal(SIGNED, "write", NULL, 0), "invalid signature");
  assert_string_equal(refusal("path=hello.txt", "read", NULL, 0), "missing signature query parameter");
  assert_null(refusal("path=hello.txt", "read", TOKEN, 0));
  assert_string_equal(refusal(SIGNED, "read", "x", 0), "access token present in header but does not match");
  assert_null(refusal(TIMED, "read", NULL, 1893456000));
  assert_string_equal(refusal(TIMED, "read", NULL, 1893456001), "signature is already expired");
  assert_string_equal(refusal(SIGNED "&signature_expiration=1893456000", "read", NULL, 1893456001),
                      "invalid signature");
}

static void without_a_token_everything_is_open(void **state)
{
  struct files_query q = {0};
  assert_null(files_refuse(&q, "read", NULL, STR_NONE, 0));
}

static void an_expiration_that_is_no_number_is_refused(void **state)
{
  cleanup_files_query struct files_query q;
  assert_int_equal(files_query_parse(STR("signature_expiration=soon"), &q), -EINVAL);
}

/* ---- multipart ---- */

struct seen {
  struct buf text;
};

static int on_begin(void *arg, struct str name, struct str filename, bool has_filename)
{
  struct seen *s = arg;
  buf_addf(&s->text, "<" STR_FMT "|", STR_ARG(name));
  if (has_filename)
    buf_adds(&s->text, filename);
  else
    buf_addz(&s->text, "-");
  return buf_addz(&s->text, ">");
}
static int on_data(void *arg, struct str bytes)
{
  return buf_adds(&((struct seen *)arg)->text, bytes);
}
static int on_end(void *arg)
{
  return buf_addz(&((struct seen *)arg)->text, "</>");
}
static const struct multipart_ops ops = {on_begin, on_data, on_end};

/* The same body in one piece and in every possible pair of pieces and byte by byte must read the same. */
static void reads_as(const char *type, struct str body, const char *wanted)
{
  for (size_t cut = 0; cut <= body.n + 1; cut++) {
    struct multipart m;
    struct seen s = {BUF_INIT(1 << 16)};
    assert_int_equal(multipart_init(&m, str_of(type), &ops, &s), 0);
    int rc = 0;
    if (cut <= body.n) {
      rc = multipart_feed(&m, str_sub(body, 0, cut));
      rc = rc < 0 ? rc : multipart_feed(&m, str_skip(body, cut));
    } else {
      for (size_t i = 0; rc == 0 && i < body.n; i++)
        rc = multipart_feed(&m, str_sub(body, i, 1));
    }
    assert_int_equal(rc, 0);
    assert_int_equal(multipart_finish(&m), 0);
    assert_string_equal(buf_z(&s.text), wanted);
    buf_free(&s.text);
    multipart_free(&m);
  }
}

static void parts_are_read_however_they_are_cut(void **state)
{
  reads_as("multipart/form-data; boundary=X",
           STR("--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"/a/b c.txt\"\r\n"
               "Content-Type: text/plain\r\n\r\nhello\r\n--X\r\ncontent-disposition: form-data; "
               "name=other\r\n\r\n\r\n--X--\r\nend"),
           "<file|/a/b c.txt>hello</><other|-></>");
}

static void content_may_look_like_a_boundary(void **state)
{
  reads_as("multipart/form-data; boundary=\"XY\"",
           STR("preamble\r\n--XY \t\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n"
               "\r\n--X\r\n--XYZ\r\n\r\r\n--\r\n--XY-a\r\n--XY\r\r\n--XY--"),
           "<file|->\r\n--X\r\n--XYZ\r\n\r\r\n--\r\n--XY-a\r\n--XY\r</>");
}

static void a_part_without_a_head_is_a_part(void **state)
{
  reads_as("multipart/mixed; boundary=b", STR("--b\r\n\r\nx\r\n--b--"), "<|->x</>");
}

static void parameter(const char *value, const char *wanted)
{
  cleanup_buf struct buf out = BUF_INIT(1024);
  assert_int_equal(multipart_param(str_of(value), "filename", &out), 1);
  assert_string_equal(buf_z(&out), wanted);
}

static void file_names_keep_their_odd_characters(void **state)
{
  parameter("form-data; name=\"file\"; filename=\"a\\\"b\\\\c\"", "a\"b\\c");
  parameter("form-data; filename=\"C:\\dev\\x\"", "C:\\dev\\x");
  parameter("form-data; filename=\"a;b=c\"; name=file", "a;b=c");
  parameter("form-data; filename=\"%22.txt\"", "%22.txt");
  parameter("form-data; filename=plain.txt", "plain.txt");
  parameter("form-data; filename=\"x\"; filename*=utf-8''%e2%82%ac.txt", "\xE2\x82\xAC.txt");
  parameter("form-data; FileName=\"\xC3\xA9\"", "\xC3\xA9");
}

static void malformed_multipart_is_refused(void **state)
{
  struct multipart m;
  struct seen s = {BUF_INIT(1 << 16)};
  assert_int_equal(multipart_init(&m, STR("multipart/form-data"), &ops, &s), -EINVAL);
  multipart_free(&m);
  assert_int_equal(multipart_init(&m, STR("multipart/form-data; boundary=\"\""), &ops, &s), -EINVAL);
  multipart_free(&m);
  assert_int_equal(multipart_init(&m, STR("multipart/form-data; boundary=X"), &ops, &s), 0);
  assert_int_equal(multipart_feed(&m, STR("--X\r\nContent-Disposition: form-data; name=\"file\r\n\r\n")), -EINVAL);
  multipart_free(&m);
  assert_int_equal(multipart_init(&m, STR("multipart/form-data; boundary=X"), &ops, &s), 0);
  assert_int_equal(multipart_feed(&m, STR("--X\r\n\r\nno end")), 0);
  assert_int_equal(multipart_finish(&m), -EINVAL);
  multipart_free(&m);
  buf_free(&s.text);
}

/* ---- gzip ---- */

static int on_inflated(void *arg, struct str out)
{
  return buf_adds(arg, out);
}

static void gzip_is_undone_piece_by_piece(void **state)
{
  char packed[256];
  z_stream z = {0};
  assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = (Bytef *)"hello hello hello";
  z.avail_in = 17;
  z.next_out = (Bytef *)packed;
  z.avail_out = sizeof(packed);
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  size_t n = sizeof(packed) - z.avail_out;
  deflateEnd(&z);
  cleanup_buf struct buf out = BUF_INIT(1024);
  struct inflate *in = inflate_new();
  for (size_t i = 0; i < n; i++) {
    assert_false(inflate_whole(in));
    assert_int_equal(inflate_feed(in, str_make(packed + i, 1), on_inflated, &out), 0);
  }
  assert_true(inflate_whole(in));
  assert_int_equal(inflate_feed(in, str_make(packed, n), on_inflated, &out), 0); /* a second member */
  assert_true(inflate_whole(in));
  assert_string_equal(buf_z(&out), "hello hello hellohello hello hello");
  inflate_free(in);
  in = inflate_new();
  assert_int_equal(inflate_feed(in, STR("this is no gzip"), on_inflated, &out), -EBADMSG);
  inflate_free(in);
}

/* 64 KiB are one piece of output: the stream's end comes together with a full one. */
static void gzip_of_whole_pieces_ends_where_it_ends(void **state)
{
  static char plain[2 << 20], packed[1 << 16];
  for (size_t size = 1 << 16; size <= sizeof(plain); size *= 2) {
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)plain;
    z.avail_in = (uInt)size;
    z.next_out = (Bytef *)packed;
    z.avail_out = sizeof(packed);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t n = sizeof(packed) - z.avail_out;
    deflateEnd(&z);
    cleanup_buf struct buf out = BUF_INIT(sizeof(plain));
    struct inflate *in = inflate_new();
    assert_int_equal(inflate_feed(in, str_make(packed, n), on_inflated, &out), 0);
    assert_true(inflate_whole(in));
    assert_int_equal(out.n, size);
    inflate_free(in);
  }
}

/* ---- headers ---- */

static void a_range_header_becomes_offset_and_length(void **state)
{
  static const struct {
    const char *text;
    int rc;
    uint64_t from, n;
  } rows[] = {{"bytes=0-4", 1, 0, 5},
              {"bytes=5-", 1, 5, 5},
              {"bytes=-3", 1, 7, 3},
              {"bytes=-30", 1, 0, 10},
              {"bytes=9-100", 1, 9, 1},
              {"bytes=10-", -ERANGE, 0, 0},
              {"bytes=-0", -ERANGE, 0, 0},
              {"bytes=4-2", 0, 0, 0},
              {"bytes=0-1,3-4", 0, 0, 0},
              {"items=0-1", 0, 0, 0},
              {"bytes=a-b", 0, 0, 0},
              {"bytes=", 0, 0, 0},
              {"bytes=18446744073709551616-", 0, 0, 0}};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    uint64_t from = 0, n = 0;
    assert_int_equal(http_range_parse(str_of(rows[i].text), 10, &from, &n), rows[i].rc);
    if (rows[i].rc > 0) {
      assert_true(from == rows[i].from);
      assert_true(n == rows[i].n);
    }
  }
}

static void dates_go_both_ways(void **state)
{
  char text[HTTP_DATE_TEXT];
  time_t back;
  http_date_text(784111777, text);
  assert_string_equal(text, "Sun, 06 Nov 1994 08:49:37 GMT");
  assert_int_equal(http_date_parse(str_of(text), &back), 0);
  assert_int_equal(back, 784111777);
  assert_int_equal(http_date_parse(STR("yesterday"), &back), -EINVAL);
}

static void disposition_is(const char *name, const char *wanted)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  http_disposition(str_of(name), &b);
  assert_string_equal(buf_z(&b), wanted);
}

static void a_download_has_a_disposition_and_a_type(void **state)
{
  disposition_is("test.txt", "inline; filename=test.txt");
  disposition_is("a b.txt", "inline; filename=\"a b.txt\"");
  disposition_is("a\"b\\.txt", "inline; filename=\"a\\\"b\\\\.txt\"");
  disposition_is("\xE2\x82\xAC.txt", "inline; filename*=utf-8''%E2%82%AC.txt");
  assert_string_equal(http_mime_type(STR("a.JSON")), "application/json");
  assert_string_equal(http_mime_type(STR("a.txt")), "text/plain; charset=utf-8");
  assert_string_equal(http_mime_type(STR("Makefile")), "application/octet-stream");
}

static void a_coding_is_chosen_from_what_is_accepted(void **state)
{
  assert_int_equal(http_coding_choose(STR_NONE, false), CODING_IDENTITY);
  assert_int_equal(http_coding_choose(STR("gzip"), false), CODING_GZIP);
  assert_int_equal(http_coding_choose(STR("gzip, deflate"), false), CODING_IDENTITY);
  assert_int_equal(http_coding_choose(STR("br, gzip, deflate, zstd"), false), CODING_IDENTITY);
  assert_int_equal(http_coding_choose(STR("identity"), false), CODING_IDENTITY);
  assert_int_equal(http_coding_choose(STR("identity;q=0"), false), CODING_NONE);
  assert_int_equal(http_coding_choose(STR("*;q=0"), false), CODING_NONE);
  assert_int_equal(http_coding_choose(STR("*;q=0, identity"), false), CODING_IDENTITY);
  assert_int_equal(http_coding_choose(STR("gzip;q=1,*;q=0"), false), CODING_GZIP);
  assert_int_equal(http_coding_choose(STR("gzip;q=1,*;q=0"), true), CODING_NONE);
  assert_int_equal(http_coding_choose(STR("gzip"), true), CODING_IDENTITY);
}

static void user_of(const char *header, int rc, const char *name)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  assert_int_equal(agent_basic_user(str_of(header), &b), rc);
  assert_string_equal(buf_z(&b), name);
}

static void basic_authorization_names_the_user(void **state)
{
  user_of("Basic dXNlcjo=", 1, "user");
  user_of("basic cm9vdDo=", 1, "root");
  user_of("Basic cm9vdDpzZWNyZXQ=", 1, "root");
  user_of("Bearer dXNlcjo=", 0, "");
  user_of("Basic ***", 0, "");
  user_of("Basic dXNlcg==", 0, "");
  user_of(NULL, 0, "");
}

/* ---- metadata ---- */

static int parse_metadata(struct http_header *headers, size_t n, struct arena *a, struct rpc_list *out)
{
  struct http_head head = {.headers = headers, .nheaders = n};
  struct err err = ERR_NONE;
  return metadata_parse(&head, a, out, &err);
}

static void of_metadata_headers_the_first_of_a_name_counts(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct http_header good[] = {{STR("x-metadata-Author"), STR("ann")},
                               {STR("X-Metadata-author"), STR("bob")},
                               {STR("X-Metadata-"), STR("x")},
                               {STR("Content-Type"), STR("x")},
                               {STR("X-Metadata-empty"), STR("")}};
  struct rpc_list out = {0};
  assert_int_equal(parse_metadata(good, ARRAY_LEN(good), &a, &out), 0);
  assert_int_equal(out.n, 2);
  const struct rpc_pair *pairs = out.p;
  assert_true(str_is(pairs[0].key, "author") && str_is(pairs[0].value, "ann"));
  assert_true(str_is(pairs[1].key, "empty") && pairs[1].value.n == 0);
}

static void metadata_above_its_limits_is_refused(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  char key[11 + 247 + 1] = "X-Metadata-", value[4100];
  memset(key + 11, 'k', 247);
  memset(value, 'v', sizeof(value));
  struct rpc_list out = {0};
  struct http_header longest = {str_make(key, 11 + 246), STR("v")}, too_long = {str_make(key, 11 + 247), STR("v")};
  assert_int_equal(parse_metadata(&longest, 1, &a, &out), 0);
  assert_int_equal(parse_metadata(&too_long, 1, &a, &out), -EINVAL);
  out = (struct rpc_list){0};
  struct http_header full = {STR("X-Metadata-a"), str_make(value, 4096 - 10)},
                     over = {STR("X-Metadata-a"), str_make(value, 4096 - 9)};
  assert_int_equal(parse_metadata(&full, 1, &a, &out), 0);
  out = (struct rpc_list){0};
  assert_int_equal(parse_metadata(&over, 1, &a, &out), -EINVAL);
  struct http_header odd = {STR("X-Metadata-a"), STR("\xC3\xA9")};
  assert_int_equal(parse_metadata(&odd, 1, &a, &out), -EINVAL);
}

/* ---- paths, permissions, environment ---- */

static void resolves(const char *path, const char *workdir, const char *wanted)
{
  struct user u = {.home = "/home/user"};
  struct err err = ERR_NONE;
  cleanup_buf struct buf out = BUF_INIT(4096);
  int rc = resolve_path(str_of(path), &u, workdir, &out, &err);
  if (!wanted) {
    assert_int_equal(rc, -EINVAL);
    return;
  }
  assert_int_equal(rc, 0);
  assert_string_equal(buf_z(&out), wanted);
}

static void paths_are_resolved_from_home_or_folder(void **state)
{
  resolves("", NULL, "/home/user");
  resolves("", "/work", "/work");
  resolves("", "sub", "/home/user/sub");
  resolves("~", NULL, "/home/user");
  resolves("~/", NULL, "/home/user");
  resolves("~/x", "/work", "/home/user/x");
  resolves("~root", NULL, NULL);
  resolves("/a//b/../c", NULL, "/a//b/../c");
  resolves("a/./b//../c", "/work", "/home/user/a/c");
  resolves("../x", NULL, "/home/x");
}

static void permissions_are(unsigned mode, const char *wanted)
{
  char out[PERMISSIONS_TEXT];
  entry_permissions(mode, out);
  assert_string_equal(out, wanted);
}

static void a_mode_is_written_as_permission_letters(void **state)
{
  permissions_are(S_IFREG | 0644, "-rw-r--r--");
  permissions_are(S_IFDIR | 0755, "drwxr-xr-x");
  permissions_are(S_IFDIR | 01777, "dtrwxrwxrwx");
  permissions_are(S_IFLNK | 0777, "Lrwxrwxrwx");
  permissions_are(S_IFREG | 04755, "urwxr-xr-x");
  permissions_are(S_IFREG | 02755, "grwxr-xr-x");
  permissions_are(S_IFCHR | 0666, "Dcrw-rw-rw-");
  permissions_are(S_IFBLK | 0660, "Drw-rw----");
  permissions_are(S_IFIFO | 0644, "prw-r--r--");
  permissions_are(S_IFSOCK | 0755, "Srwxr-xr-x");
  permissions_are(S_IFREG, "----------");
}

static void the_last_setting_of_a_variable_wins(void **state)
{
  cleanup_env struct env e = {0};
  env_set(&e, STR("A"), STR("1"));
  env_set(&e, STR("AB"), STR("2"));
  env_set(&e, STR("A"), STR(""));
  env_set(&e, STR("B=C"), STR("x"));
  env_set(&e, STR(""), STR("x"));
  env_set(&e, STR("N"), str_make("a\0b", 3));
  assert_int_equal(e.n, 2);
  assert_string_equal(env_get(&e, "A"), "");
  assert_string_equal(env_get(&e, "AB"), "2");
  assert_null(env_get(&e, "B"));
  assert_null(env_array(&e)[2]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(signatures_are_the_published_ones),
      cmocka_unit_test(a_signature_opens_only_what_it_was_made_for),
      cmocka_unit_test(without_a_token_everything_is_open),
      cmocka_unit_test(an_expiration_that_is_no_number_is_refused),
      cmocka_unit_test(parts_are_read_however_they_are_cut),
      cmocka_unit_test(content_may_look_like_a_boundary),
      cmocka_unit_test(a_part_without_a_head_is_a_part),
      cmocka_unit_test(file_names_keep_their_odd_characters),
      cmocka_unit_test(malformed_multipart_is_refused),
      cmocka_unit_test(gzip_is_undone_piece_by_piece),
      cmocka_unit_test(gzip_of_whole_pieces_ends_where_it_ends),
      cmocka_unit_test(a_range_header_becomes_offset_and_length),
      cmocka_unit_test(dates_go_both_ways),
      cmocka_unit_test(a_download_has_a_disposition_and_a_type),
      cmocka_unit_test(a_coding_is_chosen_from_what_is_accepted),
      cmocka_unit_test(basic_authorization_names_the_user),
      cmocka_unit_test(of_metadata_headers_the_first_of_a_name_counts),
      cmocka_unit_test(metadata_above_its_limits_is_refused),
      cmocka_unit_test(paths_are_resolved_from_home_or_folder),
      cmocka_unit_test(a_mode_is_written_as_permission_letters),
      cmocka_unit_test(the_last_setting_of_a_variable_wins),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
