/* SPDX-License-Identifier: Apache-2.0 */
/* gate_console.c - the console's files: packed from a directory, found by a path, and by nothing else. */
#include "unit.h"

#include "gate/console.h"
#include "wire/file_pack.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static char dir[] = "/tmp/cloche-unit-console.XXXXXX";
static struct buf packed;
static struct file_pack pack;

static void put(const char *name, const char *text)
{
  char path[256];
  snprintf(path, sizeof(path), "%s/%s", dir, name);
  int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  assert_true(fd >= 0);
  assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
  close(fd);
}

static int pack_open(void **state)
{
  char sub[256];
  struct err err = ERR_NONE;
  buf_init(&packed, 2 * FILE_PACK_MAX);
  if (!mkdtemp(dir))
    return -1;
  snprintf(sub, sizeof(sub), "%s/assets", dir);
  if (mkdir(sub, 0755))
    return -1;
  put("index.html", "<page>");
  put("frame.html", "<frame>");
  put(".stamp", "");
  put("assets/a-1.js", "let a\n\tb");
  put("assets/a-1.js.gz", "GZIP");
  put("assets/empty.css", "");
  return file_pack_read_dir(dir, &packed, &err) || file_pack_open(buf_str(&packed), &pack) ? -1 : 0;
}

static int pack_close(void **state)
{
  buf_free(&packed);
  return path_remove_tree(AT_FDCWD, dir);
}

static const char *name_of(const char *path)
{
  static char name[128];
  const struct packed_file *f = console_find(&pack, str_of(path));
  snprintf(name, sizeof(name), STR_FMT, STR_ARG(f ? f->name : STR("-")));
  return name;
}

static void files_come_back_with_type_and_gzip_form(void **state)
{
  const struct packed_file *f = file_pack_find(&pack, STR("assets/a-1.js"));
  assert_non_null(f);
  assert_true(str_is(f->body, "let a\n\tb"));
  assert_true(str_is(f->gzip, "GZIP"));
  assert_true(str_is(f->type, "text/javascript; charset=utf-8"));
  assert_int_equal(f->etag.n, FILE_PACK_ETAG_SIZE - 1);
  f = file_pack_find(&pack, STR("assets/empty.css"));
  assert_non_null(f);
  assert_int_equal(f->body.n, 0);
  assert_null(f->gzip.p);
}

static void hidden_files_and_gzip_forms_have_no_name(void **state)
{
  assert_int_equal(pack.n, 4);
  assert_null(file_pack_find(&pack, STR(".stamp")));
  assert_null(file_pack_find(&pack, STR("assets/a-1.js.gz")));
}

static void routes_of_the_page_are_its_index(void **state)
{
  assert_string_equal(name_of("/"), "index.html");
  assert_string_equal(name_of("/console"), "index.html");
  assert_string_equal(name_of("/console/"), "index.html");
  assert_string_equal(name_of("/console/sandboxes/abc/files"), "index.html");
  assert_string_equal(name_of("/console/frame.html"), "frame.html");
  assert_string_equal(name_of("/console/assets/a-1.js"), "assets/a-1.js");
}

static void an_asset_that_is_not_there_is_no_page(void **state)
{
  assert_string_equal(name_of("/console/assets/a-0.js"), "-");
  assert_string_equal(name_of("/console/assets/../index.html"), "-");
  assert_string_equal(name_of("/console/assets/"), "-");
}

static void only_reads_of_its_own_paths_are_the_consoles(void **state)
{
  struct gate g = {.console_on = true}, off = {0};
  static const struct {
    const char *method, *path;
    bool own;
  } rows[] = {{"GET", "/", true},           {"HEAD", "/", true},       {"GET", "/console/x", true},
              {"GET", "/consoles", false},  {"POST", "/", false},      {"POST", "/console/session", false},
              {"GET", "/sandboxes", false}, {"GET", "/health", false}, {"OPTIONS", "/console/", false}};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct http_head h = {.method = str_of(rows[i].method), .path = str_of(rows[i].path)};
    assert_int_equal(console_owns(&g, &h), rows[i].own);
    assert_false(console_owns(&off, &h));
  }
}

static void a_pack_that_lies_is_refused(void **state)
{
  static const char *const bad[] = {"",
                                    "x\n",
                                    "1\n",
                                    "1\na\tb\tc\t0\t1\t0\t0\n",
                                    "1\na\tb\tc\t1\t0\t0\t0\n",
                                    "1\na\tb\tc\t0\t0\t0\t18446744073709551615\n",
                                    "1\na\tb\tc\t0\t0\t0\n",
                                    "1\na\tb\tc\t0\t0\t0\t0\tmore\n",
                                    "99999\n"};
  static struct file_pack out;
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(file_pack_open(str_of(bad[i]), &out), -EPROTO);
  assert_int_equal(file_pack_open(STR("0\n"), &out), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_come_back_with_type_and_gzip_form),
      cmocka_unit_test(hidden_files_and_gzip_forms_have_no_name),
      cmocka_unit_test(routes_of_the_page_are_its_index),
      cmocka_unit_test(an_asset_that_is_not_there_is_no_page),
      cmocka_unit_test(only_reads_of_its_own_paths_are_the_consoles),
      cmocka_unit_test(a_pack_that_lies_is_refused),
  };
  return cmocka_run_group_tests(tests, pack_open, pack_close);
}
