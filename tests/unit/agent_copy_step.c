/* SPDX-License-Identifier: Apache-2.0 */
/* agent_copy_step.c - COPY archives put where they belong, and ENV values expanded. */
#include "unit.h"

#include "agent/build/applets.h"
#include "agent/build/copy_step.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char top[] = "/tmp/cloche-unit-copy.XXXXXX";

static int make_top(void **state)
{
  return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
  return path_remove_tree(AT_FDCWD, top);
}

/* ---- archives, written by hand: tar refuses to make what must be refused ---- */

static void head(struct buf *b, const char *name, char type, const char *link, size_t size)
{
  char h[512] = {0};
  unsigned sum = 0;
  snprintf(h, 100, "%s", name);
  snprintf(h + 100, 8, "%07o", 0640u);
  snprintf(h + 124, 12, "%011zo", size);
  snprintf(h + 136, 12, "%011o", 1000000000u);
  h[156] = type;
  snprintf(h + 157, 100, "%s", link);
  memcpy(h + 257, "ustar\00000", 8);
  memset(h + 148, ' ', 8);
  for (size_t i = 0; i < sizeof(h); i++)
    sum += (unsigned char)h[i];
  snprintf(h + 148, 8, "%06o", sum);
  buf_add(b, h, sizeof(h));
}

static void file(struct buf *b, const char *name, const char *text)
{
  static const char zero[512];
  head(b, name, '0', "", strlen(text));
  buf_addz(b, text);
  buf_add(b, zero, (512 - strlen(text) % 512) % 512);
}

/* The exit status of `place` with the archive as its input; in a child, because it reads descriptor 0. */
static int place(struct buf *archive, const char *source, const char *dest, const char *mode)
{
  char path[64], owner[32], full[128];
  static const char end[1024];
  buf_add(archive, end, sizeof(end));
  snprintf(path, sizeof(path), "%s/archive", top);
  snprintf(owner, sizeof(owner), "%u:%u", getuid(), getgid());
  snprintf(full, sizeof(full), "%s/%s", top, dest);
  assert_int_equal(file_write_atomic(path, archive->p, archive->n, 0600), 0);
  pid_t pid = fork();
  if (pid == 0) {
    int fd = open(path, O_RDONLY), quiet = open("/dev/null", O_WRONLY);
    dup2(fd, 0);
    dup2(quiet, 2);
    char *args[] = {(char *)source, full, owner, (char *)mode, (char *)"root"};
    _exit(copy_step_main(args));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  buf_clear(archive);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void assert_text(const char *name, const char *text)
{
  char path[256];
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  snprintf(path, sizeof(path), "%s/%s", top, name);
  if (file_read(path, &b))
    fail_msg("%s is not there", path);
  assert_string_equal(buf_z(&b), text);
}

static bool there(const char *name)
{
  char path[256];
  struct stat st;
  snprintf(path, sizeof(path), "%s/%s", top, name);
  return lstat(path, &st) == 0;
}

static void a_file_goes_to_its_exact_path_or_into_a_directory(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  file(&b, "f.txt", "hello");
  assert_int_equal(place(&b, "f.txt", "a/b/named", ""), 0);
  assert_text("a/b/named", "hello");
  file(&b, "f.txt", "hello");
  assert_int_equal(place(&b, "./f.txt", "a/dir/", ""), 0);
  assert_text("a/dir/f.txt", "hello");
  file(&b, "f.txt", "again");
  assert_int_equal(place(&b, "f.txt", "a/dir", ""), 0); /* a directory that is there */
  assert_text("a/dir/f.txt", "again");
}

static void a_directory_is_merged_without_its_own_name(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  char link[128], target[128];
  snprintf(target, sizeof(target), "%s/elsewhere", top);
  snprintf(link, sizeof(link), "%s/m", top);
  mkdir(target, 0755);
  mkdir(link, 0755);
  snprintf(link, sizeof(link), "%s/m/sub", top);
  assert_int_equal(symlink(target, link), 0); /* a directory that is a link stays one */
  head(&b, "src", '5', "", 0);
  file(&b, "src/one", "1");
  head(&b, "src/sub", '5', "", 0);
  file(&b, "src/sub/two", "2");
  head(&b, "src/link", '2', "one", 0);
  file(&b, "other", "not meant");
  assert_int_equal(place(&b, "src/*", "m", ""), 0);
  assert_text("m/one", "1");
  assert_text("elsewhere/two", "2");
  assert_text("m/link", "1");
  assert_false(there("m/other"));
  assert_false(there("m/src"));
}

static void a_mode_is_for_files_and_not_for_links(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct stat st;
  char path[128];
  file(&b, "d/x", "x");
  head(&b, "d/l", '2', "/etc/hostname", 0);
  assert_int_equal(place(&b, "d", "moded", "0751"), 0);
  snprintf(path, sizeof(path), "%s/moded/x", top);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0751);
  assert_int_equal(st.st_mtim.tv_sec, 1000000000);
  file(&b, "d/x", "x");
  assert_int_equal(place(&b, "d", "moded", "rw-r"), 1);
}

static void archives_that_lead_astray_are_refused(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  file(&b, "../out", "x");
  assert_int_equal(place(&b, ".", "safe", ""), 1);
  assert_false(there("out"));
  file(&b, "/tmp/cloche-unit-absolute", "x");
  assert_int_equal(place(&b, ".", "safe", ""), 1);
  head(&b, "door", '2', "..", 0);
  file(&b, "door/through", "x");
  assert_int_equal(place(&b, ".", "safe", ""), 1);
  assert_false(there("through"));
  head(&b, "device", '3', "", 0);
  assert_int_equal(place(&b, ".", "safe", ""), 1);
  assert_false(there("safe/device"));
}

static void an_archive_without_the_source_is_refused(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  file(&b, "f.txt", "hello");
  assert_int_equal(place(&b, "other", "x", ""), 1);
  buf_addz(&b, "this is no archive at all");
  assert_int_equal(place(&b, ".", "x", ""), 1);
}

static void prefixes_end_before_the_first_wildcard(void **state)
{
  static const char *const pairs[][2] = {{"a/b", "a/b"}, {"./a//b/", "a/b"}, {"a/*.txt", "a"}, {"*.txt", ""},
                                         {".", ""},      {"a/{b,c}/d", "a"}, {"/a", "a"}};
  for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
    cleanup_buf struct buf b = BUF_INIT(4096);
    assert_int_equal(copy_step_prefix(str_of(pairs[i][0]), &b), 0);
    assert_string_equal(buf_z(&b), pairs[i][1]);
  }
}

static const char *variables(const char *name)
{
  return !strcmp(name, "PATH") ? "/bin" : !strcmp(name, "_x1") ? "$PATH" : NULL;
}

static void only_references_are_expanded(void **state)
{
  static const char *const pairs[][2] = {{"${PATH}:/my/path", "/bin:/my/path"},
                                         {"$PATH-$PATH", "/bin-/bin"},
                                         {"$_x1", "$PATH"},
                                         {"$UNSET|${UNSET}|", "||"},
                                         {"`id` $(id) \"q\" \\n", "`id` $(id) \"q\" \\n"},
                                         {"$1 $ ${ ${} ${PATH", "$1 $ ${ ${} ${PATH"},
                                         {"$", "$"},
                                         {"", ""}};
  for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
    cleanup_buf struct buf b = BUF_INIT(4096);
    assert_int_equal(applet_expand(str_of(pairs[i][0]), variables, &b), 0);
    assert_string_equal(buf_z(&b), pairs[i][1]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_goes_to_its_exact_path_or_into_a_directory),
      cmocka_unit_test(a_directory_is_merged_without_its_own_name),
      cmocka_unit_test(a_mode_is_for_files_and_not_for_links),
      cmocka_unit_test(archives_that_lead_astray_are_refused),
      cmocka_unit_test(an_archive_without_the_source_is_refused),
      cmocka_unit_test(prefixes_end_before_the_first_wildcard),
      cmocka_unit_test(only_references_are_expanded),
  };
  return cmocka_run_group_tests(tests, make_top, remove_top);
}
