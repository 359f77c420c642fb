/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/place.h"
#include "cli/remote/profile.h"
#include "cli/remote/sixel.h"
#include "cli/remote/spec.h"
#include "cli/remote/table.h"

#include <png.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

/* ---- options ---- */

static const struct option_spec options[] = {
    {"language", 'l', "LANG", "which", OPTION_TEXT, offsetof(struct args, language), 0, 0},
    {"keep", 'k', NULL, "keep it", OPTION_FLAG, offsetof(struct args, keep), 0, 0},
    {"timeout", 't', "SECONDS", "so long", OPTION_NUMBER, offsetof(struct args, seconds), 1, 60},
};
static const struct command_spec spec = {.name = "try",
                                         .summary = "a command",
                                         .usage = "ID",
                                         .text = "What it does.",
                                         .options = options,
                                         .option_count = ARRAY_LEN(options),
                                         .least_words = 1,
                                         .most_words = 2,
                                         .tail = true};

static int parse(struct args *args, struct err *err, int argc, const char **argv)
{
  *args = (struct args){0};
  *err = ERR_NONE;
  const struct verb_spec *verb;
  return spec_parse(&spec, argc, (char **)argv, args, &verb, err);
}
#define PARSE(...)                                                                                                     \
  parse(&args, &err, (int)ARRAY_LEN(((const char *[]){"try", __VA_ARGS__})), (const char *[]){"try", __VA_ARGS__, NULL})

static void options_are_read_in_all_spellings_around_the_words(void **state)
{
  struct args args;
  struct err err;
  assert_int_equal(PARSE("-l", "r", "one", "--keep", "--timeout=7", "two", "--", "ls", "-l"), 0);
  assert_string_equal(args.language, "r");
  assert_true(args.keep);
  assert_int_equal(args.seconds, 7);
  assert_int_equal(args.word_count, 2);
  assert_string_equal(args.words[0], "one");
  assert_string_equal(args.words[1], "two");
  assert_string_equal(args.tail[0], "ls");
  assert_string_equal(args.tail[1], "-l");
  assert_null(args.tail[2]);
  assert_int_equal(PARSE("-lbash", "-t9", "-"), 0);
  assert_string_equal(args.language, "bash");
  assert_int_equal(args.seconds, 9);
  assert_string_equal(args.words[0], "-");
}

static void wrong_options_are_named(void **state)
{
  struct args args;
  struct err err;
  assert_int_equal(PARSE("--wrong", "one"), -EINVAL);
  assert_non_null(strstr(err.msg, "--wrong"));
  assert_int_equal(PARSE("-t", "61", "one"), -EINVAL);
  assert_non_null(strstr(err.msg, "from 1 to 60, not '61'"));
  assert_int_equal(PARSE("--keep=yes", "one"), -EINVAL);
  assert_int_equal(PARSE("one", "-l"), -EINVAL);
  assert_non_null(strstr(err.msg, "LANG"));
  assert_int_equal(PARSE("one", "--"), -EINVAL);
  assert_int_equal(PARSE("--keep"), -EINVAL);
  assert_int_equal(PARSE("one", "two", "three"), -EINVAL);
}

static void help_has_every_option(void **state)
{
  struct args args;
  struct err err;
  cleanup_buf struct buf out = BUF_INIT(65536);
  assert_int_equal(PARSE("--help"), 1);
  spec_help(&spec, &out);
  assert_non_null(strstr(buf_z(&out), "Usage: cloche try [OPTION...] ID"));
  assert_non_null(strstr(buf_z(&out), "-l, --language LANG"));
  assert_non_null(strstr(buf_z(&out), "--profile NAME"));
}

static void a_server_is_named_by_options_before_the_command(void **state)
{
  char *named[] = {"ps", "--url=http://x"}, *inner[] = {"shell", "i1", "--", "curl", "--url", "x"}, *none[] = {"ps"};
  assert_true(spec_names_server(&spec, 2, named));
  assert_false(spec_names_server(&spec, 6, inner));
  assert_false(spec_names_server(&spec, 1, none));
}

/* ---- verbs ---- */

static int nothing(struct args *args)
{
  return 0;
}

static const struct option_spec many[] = {
    {"run", 0, "LINE", "a step", OPTION_MANY, 0, 0, 0},
    {"env", 0, "NAME=VALUE", "a variable", OPTION_MANY, 0, 0, 0},
};
static const struct verb_spec verbs[] = {{"build", "NAME", "make one", 1, 1, nothing},
                                         {"list", "", "all", 0, 0, nothing}};
static const struct command_spec things = {.name = "thing",
                                           .summary = "things",
                                           .usage = "",
                                           .text = "Things.",
                                           .options = many,
                                           .option_count = ARRAY_LEN(many),
                                           .verbs = verbs,
                                           .verb_count = ARRAY_LEN(verbs)};

static void a_verb_is_the_first_word_and_repeated_options_keep_their_order(void **state)
{
  struct args args = {0};
  struct err err = ERR_NONE;
  const struct verb_spec *verb;
  char *good[] = {"thing", "--run", "a", "build", "--env=B=1", "one", "--run", "c"};
  assert_int_equal(spec_parse(&things, 8, good, &args, &verb, &err), 0);
  assert_ptr_equal(verb, &verbs[0]);
  assert_int_equal(args.word_count, 1);
  assert_string_equal(args.words[0], "one");
  assert_int_equal(args.given.n, 3);
  assert_string_equal(args.given.p[1].name, "env");
  assert_string_equal(args.given.p[1].value, "B=1");
  assert_string_equal(args.given.p[2].value, "c");
  vec_free(&args.given);
}

static void a_wrong_verb_is_named_with_the_nearest(void **state)
{
  struct args args = {0};
  struct err err = ERR_NONE;
  const struct verb_spec *verb;
  char *near[] = {"thing", "lits"}, *far[] = {"thing", "explode"}, *more[] = {"thing", "list", "x"},
       *none[] = {"thing"};
  assert_int_equal(spec_parse(&things, 2, near, &args, &verb, &err), -EINVAL);
  assert_non_null(strstr(err.msg, "did you mean 'list'"));
  args = (struct args){0};
  assert_int_equal(spec_parse(&things, 2, far, &args, &verb, &err), -EINVAL);
  assert_non_null(strstr(err.msg, "no verb 'explode'"));
  args = (struct args){0};
  assert_int_equal(spec_parse(&things, 3, more, &args, &verb, &err), -EINVAL);
  args = (struct args){0};
  assert_int_equal(spec_parse(&things, 1, none, &args, &verb, &err), -EINVAL);
  assert_non_null(strstr(err.msg, "a verb is missing"));
}

/* ---- ID:PATH ---- */

static void places_are_told_apart(void **state)
{
  struct place p;
  place_parse("i123:/tmp/a:b", &p);
  assert_string_equal(p.id, "i123");
  assert_string_equal(p.path, "/tmp/a:b");
  place_parse("i123:", &p);
  assert_string_equal(p.path, ".");
  place_parse("./i123:x", &p);
  assert_string_equal(p.id, "");
  assert_string_equal(p.path, "./i123:x");
  place_parse("plain", &p);
  assert_string_equal(p.id, "");
  place_parse(":x", &p);
  assert_string_equal(p.id, "");
}

static void last_names_of_paths(void **state)
{
  assert_true(str_is(path_last("/a/b//"), "b"));
  assert_true(str_is(path_last("b"), "b"));
  assert_true(str_is(path_last("/"), ""));
  assert_true(str_is(path_last("a/.."), ""));
  assert_false(name_is_plain(".."));
  assert_false(name_is_plain("a/b"));
  assert_false(name_is_plain(""));
  assert_true(name_is_plain("..."));
}

/* ---- text for terminals ---- */

static void check_clean(const char *text, int flags, const char *expected)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  text_clean(&b, str_of(text), flags);
  assert_string_equal(buf_z(&b), expected);
}

static void control_characters_do_not_reach_a_terminal(void **state)
{
  check_clean("a\033[2Jb\x7f\r", 0, "a?[2Jb??");
  check_clean("\xc2\x9b"
              "2J",
              0, "?2J");
  check_clean("gr\xc3\xbc\xc3\x9f \xe2\x82\xac", 0, "gr\xc3\xbc\xc3\x9f \xe2\x82\xac");
  check_clean("\xff\xc3", 0, "??");
  check_clean("\xc0\x9b", 0, "??");
  check_clean("x\xe2\x80\xaey", 0, "x?y");
  check_clean("a\nb\t", 0, "a?b?");
  check_clean("a\nb\t", CLEAN_LINES, "a\nb\t");
  check_clean("\033[1;31mred\033[0m\033[2J", CLEAN_COLOURS, "red?[2J");
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
  struct table t = {.columns = 2};
  cleanup_buf struct buf b = BUF_INIT(1024);
  const char *cells[] = {"ID", "STATE", "\xc3\xbc", "x", "longer", ""};
  for (size_t i = 0; i < ARRAY_LEN(cells); i++)
    table_add(&t, cells[i]);
  table_print(&t, &b);
  assert_string_equal(buf_z(&b), "ID      STATE\n\xc3\xbc       x\nlonger  -\n");
  table_free(&t);
}

static void durations_are_short(void **state)
{
  static const struct {
    int64_t seconds;
    const char *text;
  } cases[] = {{-1, "-"}, {0, "0s"}, {119, "119s"}, {120, "2m"}, {7200, "2h"}, {172800, "2d"}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    cleanup_buf struct buf b = BUF_INIT(64);
    duration_text(&b, cases[i].seconds);
    assert_string_equal(buf_z(&b), cases[i].text);
  }
}

/* ---- profiles ---- */

struct place_of_profiles {
  char dir[64], path[128];
};

static int setup(void **state)
{
  struct place_of_profiles *p = xcalloc(1, sizeof(*p));
  snprintf(p->dir, sizeof(p->dir), "/tmp/cloche-profile.XXXXXX");
  assert_non_null(mkdtemp(p->dir));
  snprintf(p->path, sizeof(p->path), "%s/sub/profiles", p->dir);
  *state = p;
  return 0;
}

static int teardown(void **state)
{
  struct place_of_profiles *p = *state;
  char sub[128];
  snprintf(sub, sizeof(sub), "%s/sub", p->dir);
  unlink(p->path);
  rmdir(sub);
  assert_int_equal(rmdir(p->dir), 0);
  free(p);
  return 0;
}

static void profiles_are_kept_beside_each_other(void **state)
{
  struct place_of_profiles *at = *state;
  struct err err = ERR_NONE;
  struct profile p;
  struct stat st;
  assert_int_equal(profile_store(at->path, "default", "http://a", "k1", &err), 0);
  assert_int_equal(profile_store(at->path, "far", "https://b", "k2", &err), 0);
  assert_int_equal(profile_store(at->path, "default", "http://c", "k3", &err), 0);
  assert_int_equal(stat(at->path, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0600);
  assert_int_equal(profile_load(at->path, "default", &p, &err), 0);
  assert_string_equal(p.url, "http://c");
  assert_string_equal(p.key, "k3");
  profile_free(&p);
  assert_int_equal(profile_load(at->path, "far", &p, &err), 0);
  assert_string_equal(p.key, "k2");
  profile_free(&p);
  assert_int_equal(profile_load(at->path, "none", &p, &err), -ENOENT);
  assert_int_equal(profile_store(at->path, "x", "http://a", "k\n[default]", &err), -EINVAL);
}

static void a_file_that_others_may_read_is_refused(void **state)
{
  struct place_of_profiles *at = *state;
  struct err err = ERR_NONE;
  struct profile p;
  assert_int_equal(profile_load(at->path, "default", &p, &err), -ENOENT);
  assert_int_equal(profile_store(at->path, "default", "http://a", "k1", &err), 0);
  assert_int_equal(chmod(at->path, 0640), 0);
  assert_int_equal(profile_load(at->path, "default", &p, &err), -EPERM);
  assert_int_equal(profile_store(at->path, "default", "http://a", "k1", &err), -EPERM);
  assert_non_null(strstr(err.msg, "chmod 600"));
}

static void lines_that_make_no_sense_are_named(void **state)
{
  struct place_of_profiles *at = *state;
  struct err err = ERR_NONE;
  struct profile p;
  static const char text[] = "# comment\n[default]\nurl = http://a\nwhat\n";
  assert_int_equal(profile_store(at->path, "other", "http://a", "k1", &err), 0);
  assert_int_equal(file_write_atomic(at->path, text, sizeof(text) - 1, 0600), 0);
  assert_int_equal(profile_load(at->path, "default", &p, &err), -EINVAL);
  assert_non_null(strstr(err.msg, ":4:"));
}

static void names_of_profiles_are_plain(void **state)
{
  assert_true(profile_name_ok("far-1.x_"));
  assert_false(profile_name_ok(""));
  assert_false(profile_name_ok("a]b"));
  assert_false(profile_name_ok("../x"));
}

/* ---- pictures ---- */

/* A PNG of one colour; owned by the caller. */
static struct str picture(unsigned width, unsigned height, const uint8_t rgba[4])
{
  png_image image = {.version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGBA};
  cleanup_free uint8_t *pixels = malloc((size_t)width * height * 4);
  for (size_t i = 0; i < (size_t)width * height; i++)
    memcpy(pixels + i * 4, rgba, 4);
  png_alloc_size_t n = 0;
  assert_true(png_image_write_to_memory(&image, NULL, &n, 0, pixels, 0, NULL));
  char *out = malloc(n);
  assert_true(png_image_write_to_memory(&image, out, &n, 0, pixels, 0, NULL));
  return str_make(out, n);
}

static void a_picture_becomes_sixels_of_its_colour_and_size(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct str png = picture(10, 7, (uint8_t[]){255, 0, 0, 255});
  assert_int_equal(sixel_from_png(png, 0, &out), 0);
  const char *text = buf_z(&out);
  assert_true(str_starts(buf_str(&out), STR("\033P0;1q\"1;1;10;7#0;2;0;0;0#1;")));
  /* red is the first of the last level of red: 5 * 7 * 6; six rows, then one */
  assert_non_null(strstr(text, "#210!10~$-#210!10@$-\033\\"));
  buf_clear(&out);
  assert_int_equal(sixel_from_png(png, 5, &out), 0); /* half as wide, and half as high */
  assert_non_null(strstr(buf_z(&out), "\"1;1;5;3#"));
  free((char *)png.p);
}

static void what_is_seen_through_is_white(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct str png = picture(4, 6, (uint8_t[]){0, 0, 0, 0});
  assert_int_equal(sixel_from_png(png, 0, &out), 0);
  assert_non_null(strstr(buf_z(&out), "#251!4~$-\033\\"));
  free((char *)png.p);
}

static void what_is_no_picture_gives_nothing(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct str png = picture(64, 64, (uint8_t[]){1, 2, 3, 255});
  assert_int_equal(sixel_from_png(STR("no picture"), 0, &out), -EPROTO);
  assert_int_equal(sixel_from_png(str_sub(png, 0, png.n / 2), 0, &out), -EPROTO);
  for (size_t i = 0; i < png.n; i++) { /* each byte wrong in turn: refused or shown, never more */
    cleanup_free char *bad = malloc(png.n);
    memcpy(bad, png.p, png.n);
    bad[i] ^= 0x55;
    buf_clear(&out);
    int r = sixel_from_png(str_make(bad, png.n), 0, &out);
    assert_true(r == -EPROTO || (r == 0 && str_starts(buf_str(&out), STR("\033P0;1q\"1;1;64;64#"))));
  }
  assert_false(sixel_text_ok(STR("#1\033]0;x\a")));
  assert_false(sixel_text_ok(STR("\x9c")));
  assert_true(sixel_text_ok(STR("#1;2;0;0;0!9~$-")));
  free((char *)png.p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_are_read_in_all_spellings_around_the_words),
      cmocka_unit_test(wrong_options_are_named),
      cmocka_unit_test(help_has_every_option),
      cmocka_unit_test(a_server_is_named_by_options_before_the_command),
      cmocka_unit_test(a_verb_is_the_first_word_and_repeated_options_keep_their_order),
      cmocka_unit_test(a_wrong_verb_is_named_with_the_nearest),
      cmocka_unit_test(places_are_told_apart),
      cmocka_unit_test(a_picture_becomes_sixels_of_its_colour_and_size),
      cmocka_unit_test(what_is_seen_through_is_white),
      cmocka_unit_test(what_is_no_picture_gives_nothing),
      cmocka_unit_test(last_names_of_paths),
      cmocka_unit_test(control_characters_do_not_reach_a_terminal),
      cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
      cmocka_unit_test(durations_are_short),
      cmocka_unit_test_setup_teardown(profiles_are_kept_beside_each_other, setup, teardown),
      cmocka_unit_test_setup_teardown(a_file_that_others_may_read_is_refused, setup, teardown),
      cmocka_unit_test_setup_teardown(lines_that_make_no_sense_are_named, setup, teardown),
      cmocka_unit_test(names_of_profiles_are_plain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
