/* SPDX-License-Identifier: Apache-2.0 */
/* warden_build.c - recipes, keys, states and logs of template builds. */
#include "unit.h"

#include "warden/build/build_state.h"
#include "wire/buildlog.h"
#include "warden/warm/zygote_key.h"
#include "wire/recipe.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

static void a_wished_disk_is_rounded_up_and_never_wraps(void **state)
{
  static const struct {
    unsigned has, wish, most, gets;
  } table[] = {
      {10240, 0, UINT_MAX, 10240},
      {512, 1, UINT_MAX, 1024},
      {512, 963, UINT_MAX, 1024}, /* 963 and a sixteenth of it */
      {512, 964, UINT_MAX, 1024},
      {512, 965, UINT_MAX, 2048},
      {512, 15420, UINT_MAX, 16384},
      {512, 15421, UINT_MAX, 16384},
      {512, 100000, 65536, 65536},
      {512, 100000, 65000, 65000},
      {512, INT_MAX, 65536, 65536},
      {512, UINT_MAX, 65536, 65536},
      {512, UINT_MAX, UINT_MAX, UINT_MAX},
      {90000, 100000, 65536, 90000}, /* a template that is larger than the limit stays */
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    assert_int_equal(build_disk_mb(table[i].has, table[i].wish, table[i].most), table[i].gets);
}

static void a_recipe_reads_back_as_it_was_written(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct recipe r;
  recipe_put(&b, RECIPE_TEMPLATE, STR("base:v1"));
  recipe_put(&b, RECIPE_START, STR("serve"));
  recipe_put(&b, RECIPE_STEP, STR("RUN"));
  recipe_put(&b, RECIPE_ARG, STR("true"));
  recipe_put(&b, RECIPE_STEP, STR("COPY"));
  recipe_put(&b, RECIPE_ARG, STR("a"));
  recipe_put(&b, RECIPE_ARG, STR(""));
  recipe_put(&b, RECIPE_FILES, STR("ff"));
  recipe_put(&b, RECIPE_AGAIN, STR_NONE);
  assert_int_equal(recipe_read(&a, buf_str(&b), &r, NULL), 0);
  assert_true(str_is(r.template_ref, "base:v1"));
  assert_true(r.has_start && !r.has_ready && !r.force);
  assert_int_equal(r.nsteps, 2);
  assert_int_equal(r.steps[0].nargs, 1);
  assert_int_equal(r.steps[1].nargs, 2);
  assert_true(str_is(r.steps[1].args[0], "a"));
  assert_int_equal(r.steps[1].args[1].n, 0);
  assert_true(str_is(r.steps[1].files, "ff") && r.steps[1].force && !r.steps[0].force);
}

static void recipes_that_are_cut_or_lead_nowhere_are_refused(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(4096), none = BUF_INIT(4096), stray = BUF_INIT(4096);
  struct err err = ERR_NONE;
  struct recipe r;
  recipe_put(&b, RECIPE_IMAGE, STR("debian"));
  recipe_put(&b, RECIPE_STEP, STR("RUN"));
  for (size_t n = 1; n < b.n; n++) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 20);
    int got = recipe_read(&a, str_make(b.p, n), &r, &err);
    assert_true(got == -EINVAL || (got == 0 && n == b.n - 3 - 8)); /* whole fields only */
  }
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  recipe_put(&none, RECIPE_STEP, STR("RUN"));
  assert_int_equal(recipe_read(&a, buf_str(&none), &r, &err), -EINVAL);
  recipe_put(&stray, RECIPE_IMAGE, STR("x"));
  recipe_put(&stray, RECIPE_ARG, STR("of no step"));
  assert_int_equal(recipe_read(&a, buf_str(&stray), &r, &err), -EINVAL);
}

static void hash(char key[BUILD_KEY], const char *a, const char *b)
{
  struct build_hash h;
  build_hash_begin(&h, "test");
  build_hash_add(&h, str_of(a));
  build_hash_add(&h, str_of(b));
  build_hash_end(&h, key);
}

static void keys_tell_parts_apart_and_are_stable(void **state)
{
  char one[BUILD_KEY], two[BUILD_KEY], same[BUILD_KEY];
  hash(one, "ab", "c");
  hash(two, "a", "bc");
  hash(same, "ab", "c");
  assert_string_not_equal(one, two);
  assert_string_equal(one, same);
  assert_int_equal(strlen(one), 64);
}

static void a_state_survives_its_own_text(void **state)
{
  struct build_state s = {.layers = BUF_INIT(4096)}, back = {0};
  cleanup_buf struct buf config = BUF_INIT(4096), again = BUF_INIT(4096);
  build_state_env(&s, STR("A"), STR("first"));
  build_state_env(&s, STR("A"), STR("with \"quotes\" and \n lines"));
  build_state_env(&s, STR("B"), STR(""));
  build_state_text(&s.user, STR("bob"));
  build_state_text(&s.start, STR("serve"));
  assert_int_equal(s.env.n, 2);
  build_state_config(&s, true, &config);
  assert_int_equal(build_state_read(&back, buf_str(&config), NULL), 0);
  assert_string_equal(back.env.p[0].value, "with \"quotes\" and \n lines");
  assert_string_equal(back.user, "bob");
  assert_string_equal(back.start, "serve");
  assert_null(back.workdir);
  build_state_config(&back, true, &again);
  assert_string_equal(buf_z(&again), buf_z(&config));
  build_state_free(&s);
  build_state_free(&back);
}

static void references_are_replaced_by_the_values_of_the_build(void **state)
{
  static const char *const cases[][2] = {{"$A/x", "/srv/x"},   {"${A}b", "/srvb"},      {"$AB", ""},
                                         {"a$", "a$"},         {"${A", "${A"},          {"$1$-${}", "$1$-${}"},
                                         {"\\$A\\n", "$A\\n"}, {"$B", "$A `id` $(id)"}, {"$A$A", "/srv/srv"}};
  struct build_state s = {0};
  build_state_env(&s, STR("A"), STR("/srv"));
  build_state_env(&s, STR("B"), STR("$A `id` $(id)"));
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    cleanup_buf struct buf out = BUF_INIT(256);
    assert_int_equal(build_state_expand(&s, str_of(cases[i][0]), &out), 0);
    assert_string_equal(buf_z(&out), cases[i][1]);
  }
  cleanup_buf struct buf small = BUF_INIT(4);
  assert_int_equal(build_state_expand(&s, STR("$A$A"), &small), -E2BIG);
  build_state_free(&s);
}

static void an_inherited_start_command_keeps_its_context(void **state)
{
  struct build_state s = {0}, grandchild = {0};
  cleanup_buf struct buf config = BUF_INIT(4096), same = BUF_INIT(4096), own = BUF_INIT(4096);
  const struct str base = STR("{\"env\":{\"A\":\"1\"},\"user\":\"bob\",\"workdir\":\"/b\",\"start\":\"serve\"}");
  assert_int_equal(build_state_read(&s, base, NULL), 0);
  build_state_config(&s, true, &same);
  assert_string_equal(buf_z(&same), base.p); /* nothing has changed: nothing to mention */
  build_state_env(&s, STR("A"), STR("2"));
  build_state_text(&s.workdir, STR("/c"));
  build_state_config(&s, true, &config);
  assert_int_equal(build_state_read(&grandchild, buf_str(&config), NULL), 0);
  assert_string_equal(grandchild.workdir, "/c");
  assert_string_equal(grandchild.inherited->workdir, "/b");
  assert_string_equal(grandchild.inherited->user, "bob");
  assert_string_equal(grandchild.inherited->env.p[0].value, "1");
  build_state_own_start(&grandchild);
  build_state_config(&grandchild, true, &own);
  assert_true(str_search(buf_str(&own), STR("startContext")) < 0);
  build_state_free(&s);
  build_state_free(&grandchild);
}

static void an_exported_templates_settings_win(void **state)
{
  struct build_state s = {0};
  struct str config = STR("{\"env\":{\"A\":\"image\"},\"user\":\"x\",\"cloche\":{\"env\":{\"A\":\"kept\"},\"user\":"
                          "\"bob\",\"start\":\"serve\"}}");
  assert_int_equal(build_state_read(&s, config, NULL), 0);
  assert_string_equal(s.user, "x");
  assert_int_equal(build_state_exported(&s, config, NULL), 0);
  assert_string_equal(s.user, "bob");
  assert_string_equal(s.env.p[0].value, "kept");
  assert_string_equal(s.start, "serve");
  assert_int_equal(build_state_exported(&s, STR("{}"), NULL), 0);
  assert_string_equal(s.user, "bob");
  build_state_free(&s);
}

static void layers_stack_with_the_newest_first_up_to_a_limit(void **state)
{
  struct build_state s = {.layers = BUF_INIT(1 << 16)};
  assert_int_equal(build_state_layer(&s, "/a", NULL), 0);
  assert_int_equal(build_state_layer(&s, "/b", NULL), 0);
  assert_string_equal(buf_z(&s.layers), "/b\n/a\n");
  for (int i = 2; i < BUILD_LAYERS_MAX; i++)
    assert_int_equal(build_state_layer(&s, "/x", NULL), 0);
  assert_int_equal(build_state_layer(&s, "/one too many", NULL), -E2BIG);
  build_state_free(&s);
}

struct heard {
  size_t n, stop;
  char last[BUILDLOG_MESSAGE + 1], step[16];
  int level;
};

static int hear(const struct buildlog_head *h, struct str message, void *arg)
{
  struct heard *d = arg;
  d->n++;
  d->level = h->level;
  str_copyz(message, d->last, sizeof(d->last));
  snprintf(d->step, sizeof(d->step), "%s", h->step);
  return d->stop && d->n == d->stop;
}

static void a_log_is_read_record_by_record_even_while_it_grows(void **state)
{
  char path[] = "/tmp/cloche-unit-log.XXXXXX", big[3 * BUILDLOG_MESSAGE];
  int fd = mkstemp(path);
  struct buildlog log;
  struct heard d = {0};
  assert_true(fd >= 0);
  assert_int_equal(buildlog_open(&log, path, 1 << 20, NULL), 0);
  buildlog_add(&log, LOG_INFO, "base", STR("first"));
  buildlog_add(&log, LOG_WARN, "12", STR(""));
  memset(big, 'x', sizeof(big));
  buildlog_add(&log, LOG_ERROR, "finalize", str_make(big, sizeof(big)));
  assert_int_equal(buildlog_each(fd, hear, &d), 0);
  assert_int_equal(d.n, 3);
  assert_int_equal(strlen(d.last), BUILDLOG_MESSAGE);
  assert_string_equal(d.step, "finalize");
  d = (struct heard){.stop = 2};
  assert_int_equal(buildlog_each(fd, hear, &d), 0);
  assert_int_equal(d.n, 2);
  assert_int_equal(d.level, LOG_WARN);
  struct buildlog_head half = {.len = 100};
  assert_int_equal(write(log.fd, &half, sizeof(half)), (ssize_t)sizeof(half)); /* its message is still to come */
  d = (struct heard){0};
  assert_int_equal(buildlog_each(fd, hear, &d), 0);
  assert_int_equal(d.n, 3);
  buildlog_close(&log);
  close(fd);
  unlink(path);
}

static void a_full_log_says_so_and_still_takes_errors(void **state)
{
  char path[] = "/tmp/cloche-unit-log.XXXXXX";
  int fd = mkstemp(path);
  struct buildlog log;
  struct heard d = {0};
  assert_int_equal(buildlog_open(&log, path, 1000, NULL), 0);
  for (int i = 0; i < 1000; i++)
    buildlog_add(&log, LOG_INFO, "1", STR("the same line again and again"));
  buildlog_add(&log, LOG_ERROR, "1", STR("Build failed: no"));
  assert_int_equal(buildlog_each(fd, hear, &d), 0);
  assert_true(d.n < 30);
  assert_string_equal(d.last, "Build failed: no");
  buildlog_close(&log);
  close(fd);
  unlink(path);
}

static void make_file(const char *layer, const char *path)
{
  char full[600], *slash;
  snprintf(full, sizeof(full), "%s/%s", layer, path);
  slash = strrchr(full, '/');
  *slash = 0;
  assert_int_equal(path_mkdirs(full, 0755), 0);
  *slash = '/';
  assert_int_equal(file_write_atomic(full, "x", 1, 0644), 0);
}

static void only_layers_that_python_may_load_from_are_in_the_zygote_key(void **state)
{
  static const struct {
    const char *path;
    bool counts;
  } cases[] = {{"home/user/app.py", false},
               {"etc/hostname", false},
               {"usr/lib/node_modules/x/index.js", false},
               {"usr/bin/tool", false},
               {"usr/bin/python3.13", true},
               {"usr/lib/python3/dist-packages/six.py", true},
               {"usr/lib/libblas.so.3", true},
               {"usr/local/lib/python3.13/dist-packages/flask/app.py", true},
               {"etc/ld.so.cache", true},
               {"root/.config/matplotlib/matplotlibrc", true},
               {"lib64", true}};
  char dir[] = "/tmp/cloche-zygote-key.XXXXXX", base[64], list[200], key[2][2 * SHA256_LEN + 1];
  assert_non_null(mkdtemp(dir));
  snprintf(base, sizeof(base), "%s/base", dir);
  make_file(base, "usr/bin/python3");
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    char layer[64];
    struct zygote_key below, f;
    snprintf(layer, sizeof(layer), "%s/%zu", dir, i);
    make_file(layer, cases[i].path);
    assert_int_equal(zygote_key_touched(layer), cases[i].counts);
    snprintf(list, sizeof(list), "%s\n", base);
    zygote_key_find(&below, str_of(list), STR("{\"env\":{\"A\":\"1\"}}"));
    snprintf(list, sizeof(list), "%s\n%s\n", layer, base);
    zygote_key_find(&f, str_of(list), STR("{\"env\":{}}"));
    zygote_key_hash(&below, key[0]);
    zygote_key_hash(&f, key[1]);
    assert_int_equal(strcmp(key[0], key[1]) != 0, cases[i].counts);
    zygote_key_free(&below);
    zygote_key_free(&f);
  }
  path_remove_tree(AT_FDCWD, dir);
}

static void variables_that_libraries_read_early_are_in_the_zygote_key(void **state)
{
  struct zygote_key f;
  zygote_key_find(&f, STR("/nowhere\n"),
                  STR("{\"env\":{\"PYTHONHASHSEED\":\"0\",\"WORD\":\"x\",\"OMP_NUM_THREADS\":\"2\"}}"));
  static const char want[] = "OMP_NUM_THREADS=2\0PYTHONHASHSEED=0";
  assert_int_equal(f.env.n, sizeof(want));
  assert_memory_equal(f.env.p, want, sizeof(want));
  zygote_key_free(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_wished_disk_is_rounded_up_and_never_wraps),
      cmocka_unit_test(a_recipe_reads_back_as_it_was_written),
      cmocka_unit_test(recipes_that_are_cut_or_lead_nowhere_are_refused),
      cmocka_unit_test(keys_tell_parts_apart_and_are_stable),
      cmocka_unit_test(a_state_survives_its_own_text),
      cmocka_unit_test(an_exported_templates_settings_win),
      cmocka_unit_test(layers_stack_with_the_newest_first_up_to_a_limit),
      cmocka_unit_test(a_log_is_read_record_by_record_even_while_it_grows),
      cmocka_unit_test(only_layers_that_python_may_load_from_are_in_the_zygote_key),
      cmocka_unit_test(variables_that_libraries_read_early_are_in_the_zygote_key),
      cmocka_unit_test(references_are_replaced_by_the_values_of_the_build),
      cmocka_unit_test(an_inherited_start_command_keeps_its_context),
      cmocka_unit_test(a_full_log_says_so_and_still_takes_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
