/* SPDX-License-Identifier: Apache-2.0 */
/* The readers and writers of libcloche, byte by byte. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static struct json *parsed(struct arena *a, const char *text)
{
  bool no_memory;
  return json_read(a, text, strlen(text), &no_memory);
}

static void json_is_read_strictly(void **state)
{
  static const char *const good[] = {"0",
                                     "-1.5e+3",
                                     "\"\\u00e9\\ud83d\\ude00\"",
                                     "[]",
                                     "{}",
                                     "[1,[2,{\"a\":null}]]",
                                     " {\"a\" : true , \"b\":false} ",
                                     "1e5"};
  static const char *const bad[] = {"",        "01",         "1.",    ".5",     "+1",      "1e",        "NaN",
                                    "[1,]",    "{\"a\":1,}", "{a:1}", "\"\t\"", "\"\\x\"", "\"\\u12\"", "\"open",
                                    "\"esc\\", "[1 2]",      "{} {}", "tru",    "{\"a\"}"};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    struct arena a = {0};
    if (!parsed(&a, good[i]))
      fail_msg("'%s' was refused", good[i]);
    arena_free(&a);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct arena a = {0};
    if (parsed(&a, bad[i]))
      fail_msg("'%s' was taken", bad[i]);
    arena_free(&a);
  }
}

static void json_depth_is_bounded(void **state)
{
  char deep[400];
  struct arena a = {0};
  memset(deep, '[', 200);
  memset(deep + 200, ']', 200);
  bool no_memory;
  assert_null(json_read(&a, deep, 400, &no_memory));
  assert_non_null(json_read(&a, deep + 150, 100, &no_memory));
  arena_free(&a);
}

static void a_bounded_arena_is_full_at_its_bound(void **state)
{
  struct arena a = {.max = 100000};
  size_t got = 0;
  while (arena_alloc(&a, 1000))
    got += 1000;
  assert_true(a.full && got > 50000 && got <= 100000);
  assert_null(arena_alloc(&a, 200000));
  arena_free(&a);
}

static void json_keeps_numbers_and_decodes_texts(void **state)
{
  struct arena a = {0};
  struct json *j =
      parsed(&a, "{\"n\":100.0,\"big\":12345678901234567890,\"s\":\"a\\n\\u00e9\\ud83d\\ude00\\ud800x\\u0000z\","
                 "\"i\":\"42\",\"n\":2.50}");
  assert_non_null(j);
  assert_string_equal(json_get(j, "n")->text, "2.50"); /* the last one counts */
  assert_string_equal(json_get(j, "big")->text, "12345678901234567890");
  const struct json *s = json_get(j, "s");
  assert_int_equal(s->len, 2 + 2 + 4 + 3 + 1 + 1 + 1);
  assert_memory_equal(s->text, "a\n\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbdx\0z", s->len);
  assert_int_equal(json_int(json_get(j, "i"), -1), 42);
  assert_int_equal(json_int(json_get(j, "none"), -1), -1);
  arena_free(&a);
}

static void json_texts_are_written_as_json(void **state)
{
  struct buf b = {0};
  buf_json(&b, "a\"\\\n\x01 \xc3\xa9 \xff \xed\xa0\x80 \xf0\x9f\x98\x80");
  assert_string_equal(b.data, "\"a\\\"\\\\\\n\\u0001 \xc3\xa9 \\ufffd \\ufffd\\ufffd\\ufffd \xf0\x9f\x98\x80\"");
  buf_free(&b);
}

static void base64_goes_both_ways(void **state)
{
  for (size_t n = 0; n < 70; n++) {
    unsigned char data[70], back[80];
    for (size_t i = 0; i < n; i++)
      data[i] = (unsigned char)(i * 37 + n);
    struct buf b = {0};
    buf_base64(&b, data, n);
    assert_int_equal(base64_decode(b.data ? b.data : "", b.len, back), (long)n);
    assert_memory_equal(data, back, n);
    buf_free(&b);
  }
  unsigned char out[16];
  assert_int_equal(base64_decode("_-8", 3, out), 2); /* URL alphabet, no padding */
  assert_int_equal(base64_decode("a", 1, out), -1);
  assert_int_equal(base64_decode("a$bc", 4, out), -1);
  assert_int_equal(base64_decode("ab=c", 4, out), -1);
}

static void sha256_is_right_at_every_length(void **state)
{
  static const struct {
    const char *text, *hex;
  } rows[] = {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
              {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
              {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
  for (size_t i = 0; i < 3; i++) {
    struct sha256 s;
    unsigned char digest[32];
    char hex[65];
    sha256_begin(&s);
    for (const char *p = rows[i].text; *p; p++)
      sha256_add(&s, p, 1);
    sha256_end(&s, digest);
    for (int k = 0; k < 32; k++)
      snprintf(hex + 2 * k, 3, "%02x", digest[k]);
    assert_string_equal(hex, rows[i].hex);
  }
}

static struct cloche *client_with(const struct cloche_config *config)
{
  struct cloche *c;
  assert_int_equal(cloche_open(config, &c, NULL), CLOCHE_OK);
  return c;
}

/* The vectors of the agent's contract. */
static void file_addresses_are_signed_as_the_contract_says(void **state)
{
  struct cloche *c = client_with(CLOCHE_WITH(cloche_config, .key = "k", .url = "http://h:1/"));
  struct cloche_box *box;
  char *url;
  assert_int_equal(cloche_attach(c, "ibox", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", NULL, &box, NULL), CLOCHE_OK);
  cloche_download_url(box, "hello.txt", "user", 0, &url, NULL);
  assert_string_equal(url, "http://h:1/files?path=hello.txt&username=user&signature="
                           "v1_gUtH%2Fs9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
  cloche_free(url);
  cloche_upload_url(box, NULL, NULL, 0, &url, NULL);
  assert_string_equal(url, "http://h:1/files?signature=v1_%2BNdakv8aCLGD5gjOtfiA7J8PrN3cGaRiZZq%2F4vOYGKA");
  cloche_free(url);
  cloche_box_free(box);
  cloche_close(c);
}

static void addresses_follow_the_configuration(void **state)
{
  unsetenv("CLOCHE_URL");
  unsetenv("E2B_API_URL");
  unsetenv("E2B_SANDBOX_URL");
  unsetenv("E2B_VOLUME_API_URL");
  struct cloche *c = client_with(CLOCHE_WITH(cloche_config, .key = "k", .domain = "box.test:8443"));
  assert_string_equal(c->api_url, "https://api.box.test:8443");
  assert_null(c->sandbox_url);
  struct cloche_box *box;
  char *text;
  assert_int_equal(cloche_attach(c, "ibox", NULL, NULL, &box, NULL), CLOCHE_OK);
  cloche_host(box, 3000, &text, NULL);
  assert_string_equal(text, "3000-ibox.box.test:8443");
  cloche_free(text);
  cloche_download_url(box, "/a b", NULL, 0, &text, NULL);
  assert_string_equal(text, "https://49983-ibox.box.test:8443/files?path=%2Fa%20b");
  cloche_free(text);
  cloche_box_free(box);
  cloche_close(c);
  setenv("CLOCHE_URL", "http://all:9/", 1);
  setenv("E2B_API_URL", "http://api:9", 1);
  c = client_with(CLOCHE_WITH(cloche_config, .key = "k"));
  assert_string_equal(c->api_url, "http://all:9");
  assert_string_equal(c->sandbox_url, "http://all:9");
  cloche_close(c);
  unsetenv("CLOCHE_URL");
  c = client_with(CLOCHE_WITH(cloche_config, .key = "k", .api_url = "http://own:9"));
  assert_string_equal(c->api_url, "http://own:9");
  cloche_close(c);
  unsetenv("E2B_API_URL");
}

static void frames_are_cut_at_any_border(void **state)
{
  static const char stream[] = "\0\0\0\0\2{}\2\0\0\0\2{}";
  unsigned char flags;
  const char *payload;
  size_t n, used;
  for (size_t len = 0; len < 7; len++)
    assert_int_equal(frame_next(stream, len, 100, &flags, &payload, &n, &used), 0);
  assert_int_equal(frame_next(stream, 14, 100, &flags, &payload, &n, &used), 1);
  assert_int_equal(used, 7);
  assert_int_equal(frame_next(stream + 7, 7, 100, &flags, &payload, &n, &used), 1);
  assert_int_equal(flags, 2);
  assert_int_equal(frame_next("\1\0\0\0\0", 5, 100, &flags, &payload, &n, &used), -1); /* compressed */
  assert_int_equal(frame_next("\0\xff\xff\xff\xff", 5, 100, &flags, &payload, &n, &used), -1);
}

static void charts_that_are_not_as_they_should_be_do_no_harm(void **state)
{
  static const char *const texts[] = {
      "{\"type\":\"line\"}",
      "{\"type\":\"line\",\"elements\":{}}",
      "{\"type\":\"line\",\"elements\":[1,null,{\"points\":[[1],[],7]}]}",
      "{\"type\":7}",
      "{\"type\":\"heatmap\",\"elements\":[[1]]}",
      "{\"type\":\"superchart\",\"elements\":[{\"type\":\"superchart\",\"elements\":[{}]}]}"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct arena a = {0};
    bool no_memory;
    const struct cloche_chart *c = chart_read(&a, parsed(&a, texts[i]), &no_memory);
    assert_non_null(c);
    assert_string_equal(c->raw, texts[i]);
    if (i == 4) {
      assert_int_equal(c->type, CLOCHE_CHART_UNKNOWN);
      assert_string_equal(c->type_name, "heatmap");
    }
    arena_free(&a);
  }
}

static void details_that_are_not_as_they_should_be_do_no_harm(void **state)
{
  static const char *const details[] = {
      "7",
      "{}",
      "{\"type\":7}",
      "{\"type\":\"tomorrow\",\"elements\":[{\"label\":\"a\"}]}",
      "{\"type\":\"heatmap\",\"elements\":{\"values\":[]}}",
      "{\"type\":\"heatmap\",\"elements\":[{\"columns\":[1],\"rows\":{},\"values\":[1,[2,{}],null],\"x\":7}]}",
      "{\"type\":\"contour\",\"elements\":[{\"paths\":[[[1]],2,[3],[[[4]]]]},null,9]}",
      "{\"type\":\"plotly\",\"elements\":[{\"columns\":{\"\":[],\"x\":7,\"z\":[[1],2]},\"encoding\":{\"x\":1}}]}",
      "{\"type\":\"bar\",\"sampled\":[1,{\"of\":\"x\"},{\"of\":9}]}"};
  for (size_t i = 0; i < sizeof details / sizeof details[0]; i++) {
    struct arena a = {0};
    bool no_memory;
    char text[256];
    snprintf(text, sizeof text, "{\"type\":\"unknown\",\"cloche\":%s}", details[i]);
    const struct cloche_chart *c = chart_read(&a, parsed(&a, text), &no_memory);
    assert_non_null(c);
    assert_string_equal(c->kind, c->detail ? c->detail->type_name : "unknown");
    assert_int_equal(c->detail != NULL, i >= 3);
    if (i == 3)
      assert_int_equal(c->detail->type, CLOCHE_DETAIL_UNKNOWN);
    if (i == 5)
      assert_int_equal(c->detail->elements[0].values.items[1].count, 2);
    if (i == 8)
      assert_int_equal(c->detail->sampled[2].of, 9);
    arena_free(&a);
  }
}

static void numbers_are_read_the_same_in_every_locale(void **state)
{
  struct arena a = {0};
  /* Not every machine has one with commas; where none is, the plain one is tried again. */
  static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C"};
  for (size_t i = 0; i < sizeof names / sizeof names[0] && !setlocale(LC_ALL, names[i]); i++)
    ;
  assert_true(json_double(parsed(&a, "-1.5e2")) == -150.0);
  assert_true(json_double(parsed(&a, "0.25")) == 0.25);
  assert_true(json_double(parsed(&a, "\"0.25\"")) == 0);
  assert_int_equal(json_int(parsed(&a, "2.5e3"), 0), 2500);
  setlocale(LC_ALL, "C");
  arena_free(&a);
}

static void a_dockerfile_becomes_steps(void **state)
{
  struct cloche_recipe *r = cloche_recipe_new();
  struct cloche_error error = {0};
  assert_int_equal(
      cloche_recipe_dockerfile(r,
                               "# comment\nFROM debian:12 AS x\nENV A=1 B=\"2 3\"\nENV OLD style value\n"
                               "RUN apt-get update && \\\n  # why\n  apt-get install -y git\n"
                               "RUN [\"echo\", \"it's\"]\nCOPY --chown=me:me --chmod=0700 a b /to/\n"
                               "RUN <<EOF\necho 1\necho 2\nEOF\nEXPOSE 80\nENTRYPOINT [\"run\"]\nCMD serve\n",
                               &error),
      CLOCHE_OK);
  static const struct {
    const char *type, *args[4];
  } want[] = {{"USER", {"root"}},
              {"WORKDIR", {"/"}},
              {"ENV", {"A", "1"}},
              {"ENV", {"B", "2 3"}},
              {"ENV", {"OLD", "style value"}},
              {"RUN", {"apt-get update &&   apt-get install -y git"}},
              {"RUN", {"'echo' 'it'\\''s'"}},
              {"COPY", {"a", "/to/", "me:me", "0700"}},
              {"COPY", {"b", "/to/", "me:me", "0700"}},
              {"RUN", {"echo 1\necho 2\n"}},
              {"USER", {"user"}},
              {"WORKDIR", {"/home/user"}}};
  const struct step *s = r->steps;
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++, s = s->next) {
    assert_non_null(s);
    assert_string_equal(s->type, want[i].type);
    for (int k = 0; k < s->arg_count; k++)
      assert_string_equal(s->args[k], want[i].args[k]);
  }
  assert_null(s);
  assert_string_equal(r->image, "debian:12");
  assert_string_equal(r->start, "'run' serve");
  cloche_recipe_free(r);
}

static void a_dockerfile_that_can_t_be_built_names_its_line(void **state)
{
  static const struct {
    const char *text, *says;
  } rows[] = {{"RUN true\n", "line 1: the first instruction must be FROM"},
              {"FROM a\nFROM b\n", "line 2: Dockerfiles with several stages"},
              {"FROM a\n\nFLY away\n", "line 3: unknown instruction"},
              {"FROM a\nCOPY x\n", "line 2: COPY needs"},
              {"FROM a\nCOPY --from=b x y\n", "line 2: COPY --from"},
              {"FROM a\nRUN <<E\nnever\n", "line 2: a document"},
              {"", "no FROM"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct cloche_recipe *r = cloche_recipe_new();
    struct cloche_error error = {0};
    assert_int_equal(cloche_recipe_dockerfile(r, rows[i].text, &error), CLOCHE_EINVAL);
    if (!strstr(error.message, rows[i].says))
      fail_msg("%s", error.message);
    cloche_error_clear(&error);
    cloche_recipe_free(r);
  }
}

static void options_of_older_and_newer_programs_are_taken(void **state)
{
  struct {
    struct cloche_run known;
    char later[64];
  } newer = {.known = {.size = sizeof newer, .language = "r", .no_retain = true}};
  OPTIONS(cloche_run, a, &newer);
  assert_string_equal(a.language, "r");
  assert_true(a.no_retain);
  struct cloche_run older = {.size = offsetof(struct cloche_run, context_id), .language = "r", .context_id = "x"};
  OPTIONS(cloche_run, b, &older);
  assert_string_equal(b.language, "r");
  assert_null(b.context_id);
}

static void errors_have_names_and_an_address_must_be_one(void **state)
{
  struct cloche *c;
  struct cloche_error error = {0};
  assert_string_equal(cloche_code_name(CLOCHE_OK), "CLOCHE_OK");
  assert_string_equal(cloche_code_name(CLOCHE_ECOMMAND), "CLOCHE_ECOMMAND");
  assert_string_equal(cloche_code_name((enum cloche_code)999), "CLOCHE_E?");
  assert_int_equal(cloche_open(CLOCHE_WITH(cloche_config, .key = "k", .url = "nonsense"), &c, &error), CLOCHE_EINVAL);
  assert_non_null(strstr(error.message, "nonsense"));
  cloche_error_clear(&error);
  assert_null(error.message);
  assert_string_equal(cloche_version(), "0.1.0");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(json_is_read_strictly),
      cmocka_unit_test(json_depth_is_bounded),
      cmocka_unit_test(a_bounded_arena_is_full_at_its_bound),
      cmocka_unit_test(json_keeps_numbers_and_decodes_texts),
      cmocka_unit_test(json_texts_are_written_as_json),
      cmocka_unit_test(base64_goes_both_ways),
      cmocka_unit_test(sha256_is_right_at_every_length),
      cmocka_unit_test(file_addresses_are_signed_as_the_contract_says),
      cmocka_unit_test(addresses_follow_the_configuration),
      cmocka_unit_test(frames_are_cut_at_any_border),
      cmocka_unit_test(charts_that_are_not_as_they_should_be_do_no_harm),
      cmocka_unit_test(details_that_are_not_as_they_should_be_do_no_harm),
      cmocka_unit_test(numbers_are_read_the_same_in_every_locale),
      cmocka_unit_test(a_dockerfile_becomes_steps),
      cmocka_unit_test(a_dockerfile_that_can_t_be_built_names_its_line),
      cmocka_unit_test(options_of_older_and_newer_programs_are_taken),
      cmocka_unit_test(errors_have_names_and_an_address_must_be_one),
  };
  return cmocka_run_group_tests_name("libcloche", tests, NULL, NULL);
}
