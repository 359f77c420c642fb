/* SPDX-License-Identifier: Apache-2.0 */
/* content_files.c - files of a volume: links, races and trees that a box may leave there. */
#include "unit.h"

#include "content/file_ops.h"
#include "wire/volume_path.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define LIMITS(most) ((struct list_limits){most, 20, 32})

static char top[] = "/tmp/cloche-unit-content.XXXXXX";
static int root = -1, outside = -1;

/* outside/ has a file that nothing may reach; inside/ is the volume. */
static int make_dirs(void **state)
{
  char path[128];
  if (!mkdtemp(top))
    return -1;
  snprintf(path, sizeof(path), "%s/inside", top);
  mkdir(path, 0755);
  root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  outside = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int fd = openat(outside, "secret", O_WRONLY | O_CREAT, 0600);
  return fd < 0 || fd_write_all(fd, "SECRET", 6) || close(fd);
}

static int remove_dirs(void **state)
{
  close(root);
  close(outside);
  return path_remove_tree(AT_FDCWD, top);
}

static const struct file_owner plain = {0, 0, 0644, TIME_KEEP};

static int put(const char *path, const char *text, bool force)
{
  struct err err = ERR_NONE;
  cleanup_buf struct buf json = BUF_INIT(1 << 16);
  cleanup_fd int fd = file_upload(root, str_of(path), "01234567890123456789", strlen(text), force, &err);
  if (fd < 0)
    return fd;
  assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
  return file_commit(root, str_of(path), "01234567890123456789", fd, &plain, force, &json, &err);
}

static void assert_holds(const char *path, const char *text)
{
  struct err err = ERR_NONE;
  uint64_t size;
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  cleanup_fd int fd = file_open(root, str_of(path), &size, &err);
  assert_true(fd >= 0);
  assert_int_equal(fd_read_all(fd, &b), 0);
  assert_true(str_is(buf_str(&b), text));
  assert_int_equal(size, strlen(text));
}

static void assert_secret_is_whole(void)
{
  char path[128];
  cleanup_buf struct buf b = BUF_INIT(100);
  snprintf(path, sizeof(path), "%s/secret", top);
  assert_int_equal(file_read(path, &b), 0);
  assert_true(str_is(buf_str(&b), "SECRET"));
}

static void an_upload_appears_whole(void **state)
{
  assert_int_equal(put("/one", "first", false), 0);
  assert_holds("/one", "first");
  assert_int_equal(put("/one", "second", false), -EEXIST);
  assert_holds("/one", "first");
  assert_int_equal(put("/one", "second", true), 0);
  assert_holds("/one", "second");
  assert_int_equal(put("/none/one", "x", true), -ENOENT);
  assert_int_equal(put("/", "x", true), -EISDIR);
}

static void what_is_not_committed_leaves_nothing(void **state)
{
  struct err err = ERR_NONE;
  uint64_t size;
  int fd = file_upload(root, STR("/half"), "01234567890123456789", 5, false, &err);
  assert_true(fd >= 0);
  assert_int_equal(fd_write_all(fd, "ha", 2), 0);
  close(fd);
  assert_int_equal(file_open(root, STR("/half"), &size, &err), -ENOENT);
}

static void links_lead_nowhere_else(void **state)
{
  struct err err = ERR_NONE;
  uint64_t size;
  cleanup_buf struct buf json = BUF_INIT(1 << 16);
  char far[128];
  snprintf(far, sizeof(far), "%s/secret", top);
  const char *const targets[] = {far, "../secret", "../../../../../../../../etc/passwd", "/proc/self/root/etc/passwd"};
  for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
    unlinkat(root, "link", 0);
    assert_int_equal(symlinkat(targets[i], root, "link"), 0);
    assert_true(file_open(root, STR("/link"), &size, &err) < 0);
    assert_int_equal(file_stat(root, STR("/link"), &json, &err), 0);
    assert_true(str_search(buf_str(&json), STR("\"symlink\"")) > 0);
    assert_true(str_search(buf_str(&json), str_of(targets[i])) > 0);
    assert_int_equal(put("/link", "mine", true), 0); /* in the link's place */
    assert_holds("/link", "mine");
  }
  unlinkat(root, "link", 0);
  assert_int_equal(symlinkat("..", root, "up"), 0);
  assert_true(file_open(root, STR("/up/secret"), &size, &err) < 0);
  assert_int_equal(put("/up/made", "x", false), 0); /* `..` of the root is the root */
  assert_holds("/made", "x");
  assert_int_equal(file_remove(root, STR("/up/secret"), false, INT64_MAX, &err), -ENOENT);
  assert_int_equal(file_remove(root, STR("/up"), false, INT64_MAX, &err), 0);
  assert_holds("/made", "x");
  assert_secret_is_whole();
}

static void a_link_inside_is_followed(void **state)
{
  struct err err = ERR_NONE;
  cleanup_buf struct buf json = BUF_INIT(1 << 16);
  assert_int_equal(
      file_mkdir(root, STR("/deep/er"), &(struct file_owner){0, 0, 0755, TIME_KEEP}, true, false, &json, &err), 0);
  assert_int_equal(put("/deep/er/file", "here", false), 0);
  assert_int_equal(symlinkat("/deep/er", root, "short"), 0);
  assert_holds("/short/file", "here");
  assert_int_equal(file_remove(root, STR("/short"), false, INT64_MAX, &err), 0);
  assert_holds("/deep/er/file", "here");
}

static void removing_follows_no_link(void **state)
{
  struct err err = ERR_NONE;
  mkdirat(root, "tree", 0755);
  cleanup_fd int tree = openat(root, "tree", O_RDONLY | O_DIRECTORY);
  char far[128];
  snprintf(far, sizeof(far), "%s", top);
  assert_int_equal(symlinkat(far, tree, "out"), 0);
  assert_int_equal(symlinkat("..", tree, "up"), 0);
  assert_int_equal(file_remove(root, STR("/tree"), false, INT64_MAX, &err), 0);
  assert_secret_is_whole();
}

static void a_tree_deeper_than_any_path_goes(void **state)
{
  struct err err = ERR_NONE;
  int at = dup(root);
  for (int i = 0; i < 3000; i++) {
    mkdirat(at, "deeper", 0755);
    int next = openat(at, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(next >= 0);
    close(at);
    at = next;
  }
  close(at);
  uint64_t size;
  int fd = file_list(root, STR("/deeper"), 100000, &LIMITS(100000), &size, &err);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(file_remove(root, STR("/deeper"), false, INT64_MAX, &err), 0);
  assert_int_equal(faccessat(root, "deeper", F_OK, 0), -1);
}

static void entries_without_a_path_count_in_a_listing(void **state)
{
  struct err err = ERR_NONE;
  char name[251] = "", file[128], path[260];
  memset(name, 'd', sizeof(name) - 1);
  int at = dup(root);
  for (int i = 0; i < 15; i++) {
    assert_int_equal(mkdirat(at, name, 0755), 0);
    int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(next >= 0);
    close(at);
    at = next;
  }
  snprintf(path, sizeof(path), "/%s", name);
  for (int k = 0; k < 2; k++) { /* two directories of files whose paths are too long */
    name[0] = (char)('0' + k);
    assert_int_equal(mkdirat(at, name, 0755), 0);
    int last = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 20; i++) {
      snprintf(file, sizeof(file), "%0100d", i);
      close(openat(last, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
    close(last);
  }
  close(at);
  uint64_t size;
  assert_int_equal(file_list(root, str_of(path), 100, &LIMITS(55), &size, &err), -E2BIG); /* 14, 2 and 40 */
  int fd = file_list(root, str_of(path), 100, &LIMITS(56), &size, &err);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(file_remove(root, str_of(path), false, INT64_MAX, &err), 0);
}

static void special_files_are_no_files(void **state)
{
  struct err err = ERR_NONE;
  uint64_t size;
  assert_int_equal(mkfifoat(root, "fifo", 0644), 0);
  assert_int_equal(file_open(root, STR("/fifo"), &size, &err), -ENOENT);
  assert_int_equal(file_remove(root, STR("/fifo"), false, INT64_MAX, &err), 0);
}

/* ---- races ---- */

static atomic_bool over;

/* A box that swaps a directory with a link out of the volume, as fast as it can. */
static void *swap(void *arg)
{
  if (symlinkat("../..", root, "race-link"))
    return NULL;
  mkdirat(root, "race", 0755);
  while (!over) {
    renameat2(root, "race", root, "race-link", RENAME_EXCHANGE);
    int fd = openat(root, "race/x", O_WRONLY | O_CREAT, 0644);
    if (fd >= 0)
      close(fd);
  }
  return NULL;
}

static void swaps_lead_nowhere_else(void **state)
{
  pthread_t thread;
  struct err err = ERR_NONE;
  cleanup_buf struct buf json = BUF_INIT(1 << 16);
  over = false;
  assert_int_equal(pthread_create(&thread, NULL, swap, NULL), 0);
  int64_t until = clock_mono_us() + 1500000;
  unsigned stored = 0;
  while (clock_mono_us() < until) {
    uint64_t size;
    stored += !put("/race/secret", "mine", true);
    int fd = file_open(root, STR("/race/secret"), &size, &err);
    char text[8] = "";
    if (fd >= 0) {
      assert_true(read(fd, text, sizeof(text)) >= 0);
      close(fd);
    }
    assert_string_not_equal(text, "SECRET");
    file_stat(root, STR("/race/secret"), &json, &err);
    file_mkdir(root, STR("/race/d/e"), &(struct file_owner){0, 0, 0700, TIME_KEEP}, true, false, &json, &err);
    file_change(root, STR("/race/secret"), &(struct file_owner){0, 0, 0777, TIME_KEEP}, &json, &err);
    file_remove(root, STR("/race/d"), false, INT64_MAX, &err);
    file_remove(root, STR("/race/secret"), false, INT64_MAX, &err);
  }
  over = true;
  pthread_join(thread, NULL);
  struct stat st;
  assert_true(stored > 0);
  assert_secret_is_whole();
  assert_int_equal(fstatat(outside, "secret", &st, 0), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
  assert_int_equal(faccessat(outside, "d", F_OK, 0), -1);
}

/* ---- paths ---- */

static void paths_are_cleaned(void **state)
{
  static const struct {
    const char *given, *clean;
  } cases[] = {{"a", "/a"},       {"/a/", "/a"},      {" /a b ", "/a b"}, {"//a//b", "/a/b"}, {"/./a/.", "/a"},
               {"../../a", "/a"}, {"/a/../..", "/"},  {".", "/"},         {"/", "/"},         {"a/../b", "/b"},
               {"/...", "/..."},  {"\t/x\r\n", "/x"}, {"/a\\b", "/a\\b"}, {"/..a", "/..a"}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    cleanup_buf struct buf b = BUF_INIT(1 << 17);
    assert_int_equal(volume_path_clean(str_of(cases[i].given), &b), 0);
    assert_string_equal(buf_z(&b), cases[i].clean);
    assert_true(volume_path_valid(buf_str(&b)));
  }
}

static void bad_paths_are_refused(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 17), longer = BUF_INIT(1 << 17);
  assert_int_equal(volume_path_clean(STR(""), &b), -EINVAL);
  assert_int_equal(volume_path_clean(STR(" \t "), &b), -EINVAL);
  assert_int_equal(volume_path_clean(STR("/a\0b"), &b), -EINVAL);
  for (int i = 0; i < 256; i++)
    buf_addc(&longer, 'x');
  assert_int_equal(volume_path_clean(buf_str(&longer), &b), -ENAMETOOLONG);
  assert_int_equal(volume_path_clean(str_sub(buf_str(&longer), 0, 255), &b), 0);
  buf_clear(&longer);
  for (int i = 0; i < 2048; i++)
    buf_addz(&longer, "/x");
  assert_int_equal(volume_path_clean(buf_str(&longer), &b), -ENAMETOOLONG);
  static const char *const bad[] = {"", "a", "/a/", "//a", "/.", "/..", "/a/../b", "/a//b"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_false(volume_path_valid(str_of(bad[i])));
  assert_true(volume_upload_valid(STR("0123456789abcdefghij")));
  assert_false(volume_upload_valid(STR("0123456789abcdefghi/")));
  assert_false(volume_upload_valid(STR("0123456789")));
}

/* ---- where files can't be without a name ---- */

#define ID_A "aaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbb"

/* From here on this process is on a filesystem without O_TMPFILE. */
static void lose_tmpfile(void)
{
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_TMPFILE),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, O_TMPFILE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {ARRAY_LEN(code), code};
  assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static bool is_there(const char *name)
{
  struct stat st;
  return !fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW);
}

static void without_tmpfile(void)
{
  struct err err = ERR_NONE;
  uint64_t size;
  lose_tmpfile();
  cleanup_fd int a = file_upload(root, STR("/hidden"), ID_A, 5, false, &err);
  cleanup_fd int b = file_upload(root, STR("/other"), ID_B, 5, false, &err);
  assert_true(a >= 0 && b >= 0 && is_there(UPLOADS_DIR "/" ID_A) && is_there(UPLOADS_DIR "/" ID_B));
  assert_false(is_there("hidden"));

  cleanup_fd int list = file_list(root, STR("/"), 9, &LIMITS(1000), &size, &err);
  cleanup_buf struct buf text = BUF_INIT(1 << 20);
  assert_true(list >= 0);
  lseek(list, 0, SEEK_SET);
  assert_int_equal(fd_read_all(list, &text), 0);
  assert_true(str_search(buf_str(&text), STR("cloche-uploads")) < 0);

  cleanup_buf struct buf json = BUF_INIT(1 << 16);
  assert_int_equal(fd_write_all(a, "whole", 5), 0);
  assert_int_equal(file_sync(a, STR("/hidden"), &err), 0);
  assert_int_equal(file_commit(root, STR("/hidden"), ID_A, a, &plain, false, &json, &err), 0);
  assert_int_equal(file_sync_name(root, STR("/hidden"), &err), 0);
  assert_holds("/hidden", "whole");
  file_discard(root, ID_A);
  assert_true(is_there(UPLOADS_DIR "/" ID_B) && !is_there(UPLOADS_DIR "/" ID_A));
  file_discard(root, ID_B);
  assert_false(is_there(UPLOADS_DIR));

  assert_int_equal(put("/hidden", "mine", false), -EEXIST);
  assert_int_equal(put("/hidden", "mine", true), 0);
  assert_holds("/hidden", "mine");
  file_discard(root, "01234567890123456789");
  assert_false(is_there(UPLOADS_DIR));
}

static void filesystems_without_nameless_files(void **state)
{
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    without_tmpfile();
    _exit(0);
  }
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  assert_int_equal(status, 0);
}

static void leftovers_are_swept_when_they_are_old(void **state)
{
  static const char *const names[] = {UPLOADS_DIR "/" ID_A, UPLOADS_DIR "/" ID_B, UPLOADS_DIR "/a user's own"};
  assert_int_equal(mkdirat(root, UPLOADS_DIR, 0700), 0);
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    close(openat(root, names[i], O_WRONLY | O_CREAT, 0600));
  file_sweep(root, 3600);
  assert_true(is_there(names[0]) && is_there(names[1]) && is_there(names[2]));
  file_sweep(root, -2);
  assert_false(is_there(names[0]) || is_there(names[1]));
  assert_true(is_there(names[2]));
  unlinkat(root, names[2], 0);
  file_sweep(root, -2);
  assert_false(is_there(UPLOADS_DIR));
  file_sweep(root, -2); /* nothing is there */
  assert_int_equal(symlinkat("..", root, UPLOADS_DIR), 0);
  file_sweep(root, -2);
  assert_secret_is_whole();
  assert_int_equal(put("/again", "first", true), 0);
  assert_int_equal(put("/again", "second", true), 0); /* the link gives way */
  assert_holds("/again", "second");
  assert_false(is_there(UPLOADS_DIR));
}

/* The one's end takes the hidden directory away that the other has just made. */
static void *replace_often(void *name)
{
  struct err err = ERR_NONE;
  cleanup_buf struct buf json = BUF_INIT(1 << 16);
  for (int i = 0; i < 500; i++) {
    cleanup_fd int fd = file_upload(root, STR("/wanted"), name, 1, true, &err);
    if (fd < 0 || file_commit(root, STR("/wanted"), name, fd, &plain, true, &json, &err))
      return name;
  }
  return NULL;
}

static void replacements_at_once_leave_nothing(void **state)
{
  pthread_t one, two;
  void *a, *b;
  assert_int_equal(pthread_create(&one, NULL, replace_often, ID_A), 0);
  assert_int_equal(pthread_create(&two, NULL, replace_often, ID_B), 0);
  pthread_join(one, &a);
  pthread_join(two, &b);
  assert_true(!a && !b);
  assert_true(is_there("wanted"));
  assert_false(is_there(UPLOADS_DIR));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_upload_appears_whole),
      cmocka_unit_test(what_is_not_committed_leaves_nothing),
      cmocka_unit_test(links_lead_nowhere_else),
      cmocka_unit_test(a_link_inside_is_followed),
      cmocka_unit_test(removing_follows_no_link),
      cmocka_unit_test(a_tree_deeper_than_any_path_goes),
      cmocka_unit_test(entries_without_a_path_count_in_a_listing),
      cmocka_unit_test(special_files_are_no_files),
      cmocka_unit_test(swaps_lead_nowhere_else),
      cmocka_unit_test(filesystems_without_nameless_files),
      cmocka_unit_test(leftovers_are_swept_when_they_are_old),
      cmocka_unit_test(replacements_at_once_leave_nothing),
      cmocka_unit_test(paths_are_cleaned),
      cmocka_unit_test(bad_paths_are_refused),
  };
  return cmocka_run_group_tests(tests, make_dirs, remove_dirs);
}
