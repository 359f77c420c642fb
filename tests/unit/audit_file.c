/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the audit log as lines, and the files that hold them. */
#include "audit/audit_file.h"
#include "unit.h"
#include "wire/audit_record.h"
#include "wire/wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static int make_dir(char *path)
{
  strcpy(path, "/tmp/cloche-audit.XXXXXX"); /* NOLINT */
  assert_non_null(mkdtemp(path));
  return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void remove_dir(const char *path)
{
  path_remove_tree(AT_FDCWD, path);
}

static void a_record_becomes_one_line_whatever_its_texts_hold(void **state)
{
  struct audit_record r = {.who = AUDIT_KEY,
                           .key = STR("k1"),
                           .team = STR("t1"),
                           .team_name = STR("two\nlines \"quoted\""),
                           .client = STR("127.0.0.1:5"),
                           .agent = STR("\x1b[2J\xff"),
                           .method = STR("POST"),
                           .route = STR("sandboxes/{id}/pause"),
                           .id = STR("i1"),
                           .status = 204,
                           .took_us = 1500},
                      back;
  cleanup_buf struct buf b = BUF_INIT(1 << 16), line = BUF_INIT(1 << 16);
  audit_record_pack(&b, &r);
  assert_int_equal(audit_record_read(buf_str(&b), false, &back), 0);
  audit_record_line(&line, &back, 3, 1700000000000000);
  assert_int_equal(str_find(buf_str(&line), '\n'), (int)line.n - 1);
  cleanup_arena struct arena a = ARENA_INIT(1 << 16);
  struct json *v = json_read(&a, str_trim(buf_str(&line)), 0, NULL);
  assert_non_null(v);
  assert_true(str_is(json_text(json_get(v, "teamName"), STR_NONE), "two?lines \"quoted\""));
  assert_true(str_is(json_text(json_get(v, "route"), STR_NONE), "sandboxes/{id}/pause"));
  assert_true(str_is(json_text(json_get(v, "who"), STR_NONE), "key"));
  assert_true(str_is(json_text(json_get(v, "time"), STR_NONE), "2023-11-14T22:13:20.000000Z"));
  assert_null(json_get(v, "lost"));
}

static void texts_are_cut_and_other_packets_refused(void **state)
{
  char text[AUDIT_TEXT_MAX * 4];
  memset(text, 'x', sizeof(text));
  struct audit_record r = {.agent = {text, sizeof(text)}, .method = STR("GET")}, back;
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  audit_record_pack(&b, &r);
  assert_int_equal(audit_record_read(buf_str(&b), false, &back), 0);
  assert_int_equal(back.agent.n, AUDIT_TEXT_MAX);
  buf_clear(&b);
  wire_begin(&b, WIRE_AUTH, 0, 0);
  assert_int_equal(audit_record_read(buf_str(&b), false, &back), -EINVAL);
  assert_int_equal(audit_record_read(STR("short"), false, &back), -EINVAL);
}

static void only_the_warden_may_tell_of_root(void **state)
{
  struct audit_record r = {.who = AUDIT_ROOT, .client = STR("uid=0 pid=7"), .route = STR("box_kill")}, back;
  cleanup_buf struct buf b = BUF_INIT(1 << 16), line = BUF_INIT(1 << 16);
  audit_record_pack(&b, &r);
  assert_int_equal(audit_record_read(buf_str(&b), false, &back), -EINVAL);
  assert_int_equal(audit_record_read(buf_str(&b), true, &back), 0);
  audit_record_line(&line, &back, 0, 0);
  cleanup_arena struct arena a = ARENA_INIT(1 << 16);
  struct json *v = json_read(&a, str_trim(buf_str(&line)), 0, NULL);
  assert_true(str_is(json_text(json_get(v, "who"), STR_NONE), "root"));
  assert_null(json_get(v, "gate"));
  r.who = AUDIT_KEY;
  buf_clear(&b);
  audit_record_pack(&b, &r);
  assert_int_equal(audit_record_read(buf_str(&b), true, &back), -EINVAL);
}

static void files_are_bounded_in_size_and_number(void **state)
{
  char path[64];
  struct audit_file f;
  struct err err = ERR_NONE;
  cleanup_fd int dir = make_dir(path);
  f = (struct audit_file){.set = AUDIT_PROVEN, .dir = dir, .fd = -1};
  assert_int_equal(audit_file_open(&f, &err), 0);
  for (int i = 0; i < 100; i++) {
    char line[64];
    int n = snprintf(line, sizeof(line), "{\"n\":%d,\"pad\":\"....................\"}\n", i);
    assert_int_equal(audit_file_add(&f, str_make(line, (size_t)n), 200, 3), 0);
  }
  struct audit_names all = {0};
  assert_int_equal(audit_file_names(dir, AUDIT_PROVEN, &all), 0);
  assert_int_equal(all.names.n, 3);
  assert_string_equal(all.names.p[2], AUDIT_PROVEN ".jsonl");
  for (size_t i = 0; i < all.names.n; i++) {
    struct stat st;
    assert_int_equal(fstatat(dir, all.names.p[i], &st, 0), 0);
    assert_in_range(st.st_size, 1, 200);
  }
  audit_names_free(&all);
  audit_file_close(&f);
  remove_dir(path);
}

static void add_many(struct audit_file *f, int times)
{
  for (int i = 0; i < times; i++)
    assert_int_equal(audit_file_add(f, STR("{\"pad\":\"..............................\"}\n"), 200, 2), 0);
}

static void what_strangers_fill_evicts_nothing_else(void **state)
{
  char path[64];
  cleanup_fd int dir = make_dir(path);
  struct audit_file f = {.set = AUDIT_PROVEN, .dir = dir, .fd = -1},
                    refused = {.set = AUDIT_REFUSED, .dir = dir, .fd = -1};
  add_many(&f, 1);
  add_many(&refused, 1000);
  struct audit_names of_teams = {0}, of_nobody = {0};
  assert_int_equal(audit_file_names(dir, AUDIT_PROVEN, &of_teams), 0);
  assert_int_equal(audit_file_names(dir, AUDIT_REFUSED, &of_nobody), 0);
  assert_int_equal(of_teams.names.n, 1);
  assert_string_equal(of_teams.names.p[0], "audit.jsonl");
  assert_int_equal(of_nobody.names.n, 2);
  assert_string_equal(of_nobody.names.p[1], "refused.jsonl");
  audit_names_free(&of_teams);
  audit_names_free(&of_nobody);
  audit_file_close(&f);
  audit_file_close(&refused);
  remove_dir(path);
}

/* A byte of a text must not become six in the file, and none may steer the terminal that shows it. */
static void control_characters_are_blanked_and_a_line_is_bounded(void **state)
{
  char bad[4096];
  memset(bad, 1, sizeof(bad));
  struct str all = {bad, sizeof(bad)};
  struct audit_record r = {.who = AUDIT_NOBODY,
                           .forwarded = all,
                           .agent = STR("a\xc2\x9b"
                                        "2Jb\xc2\xa0"),
                           .id = all,
                           .second = all,
                           .left_out = 7},
                      back;
  cleanup_buf struct buf b = BUF_INIT(1 << 16), line = BUF_INIT(1 << 16);
  audit_record_pack(&b, &r);
  assert_int_equal(audit_record_read(buf_str(&b), false, &back), 0);
  assert_true(audit_record_unproven(&back));
  audit_record_line(&line, &back, 3, 1700000000000000);
  assert_in_range(line.n, 1, 700);
  cleanup_arena struct arena a = ARENA_INIT(1 << 16);
  struct json *v = json_read(&a, str_trim(buf_str(&line)), 0, NULL);
  struct str id = json_text(json_get(v, "id"), STR_NONE);
  assert_int_equal(id.n, 128);
  for (size_t i = 0; i < id.n; i++)
    assert_int_equal(id.p[i], '?');
  assert_true(str_is(json_text(json_get(v, "userAgent"), STR_NONE), "a??2Jb\xc2\xa0"));
  int64_t n = 0;
  assert_int_equal(json_int(json_get(v, "leftOut"), &n), 0);
  assert_int_equal(n, 7);
}

static void links_that_were_refused_are_of_nobody(void **state)
{
  assert_true(audit_record_unproven(&(struct audit_record){.who = AUDIT_LINK, .status = 404}));
  assert_false(audit_record_unproven(&(struct audit_record){.who = AUDIT_LINK, .status = 200}));
  assert_false(audit_record_unproven(&(struct audit_record){.who = AUDIT_KEY, .status = 404}));
}

static void a_half_line_of_a_crash_is_closed(void **state)
{
  char path[64];
  struct audit_file f;
  struct err err = ERR_NONE;
  cleanup_fd int dir = make_dir(path);
  f = (struct audit_file){.set = AUDIT_PROVEN, .dir = dir, .fd = -1};
  cleanup_fd int fd = openat(dir, AUDIT_PROVEN ".jsonl", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  assert_int_equal(write(fd, "{\"a\":1}\n{\"b", 11), 11);
  assert_int_equal(audit_file_open(&f, &err), 0);
  assert_int_equal(audit_file_add(&f, STR("{\"c\":1}\n"), 1000, 3), 0);
  char text[128];
  ssize_t n = pread(f.fd, text, sizeof(text), 0);
  assert_true(str_is(str_make(text, (size_t)n), "{\"a\":1}\n{\"b\n{\"c\":1}\n"));
  audit_file_close(&f);
  remove_dir(path);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_record_becomes_one_line_whatever_its_texts_hold),
      cmocka_unit_test(texts_are_cut_and_other_packets_refused),
      cmocka_unit_test(only_the_warden_may_tell_of_root),
      cmocka_unit_test(files_are_bounded_in_size_and_number),
      cmocka_unit_test(what_strangers_fill_evicts_nothing_else),
      cmocka_unit_test(control_characters_are_blanked_and_a_line_is_bounded),
      cmocka_unit_test(links_that_were_refused_are_of_nobody),
      cmocka_unit_test(a_half_line_of_a_crash_is_closed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
