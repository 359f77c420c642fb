/* SPDX-License-Identifier: Apache-2.0 */
/* Maps, arenas, descriptors, and paths that can't escape their root. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void a_map_keeps_what_was_put_through_growth_and_deletion(void **state)
{
  struct map m = {0};
  char key[32];
  for (intptr_t i = 1; i <= 5000; i++) {
    snprintf(key, sizeof(key), "k%ld", (long)i);
    assert_null(map_put(&m, str_of(key), (void *)i));
  }
  for (intptr_t i = 1; i <= 5000; i += 2) {
    snprintf(key, sizeof(key), "k%ld", (long)i);
    assert_ptr_equal(map_del(&m, str_of(key)), (void *)i);
  }
  size_t seen = 0;
  void *value;
  for (size_t i = 0; map_next(&m, &i, NULL, &value); seen++)
    assert_true((intptr_t)value % 2 == 0);
  assert_int_equal(seen, 2500);
  assert_null(map_get(&m, STR("k1")));
  assert_ptr_equal(map_get(&m, STR("k2")), (void *)2);
  assert_ptr_equal(map_put(&m, STR("k2"), (void *)9), (void *)2);
  map_free(&m);
}

static void an_arena_refuses_past_its_limit(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(10000);
  assert_non_null(arena_alloc(&a, 9000));
  assert_null(arena_alloc(&a, 2000));
  assert_non_null(arena_alloc(&a, 100));
  assert_string_equal(arena_fmt(&a, "%d", 7), "7");
}

static void descriptors_travel_over_a_socket(void **state)
{
  int pair[2], got[2] = {-1, -1}, pipe_fds[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
  assert_int_equal(fd_send(pair[0], "hi", 2, pipe_fds, 2, 0), 2);
  char text[8];
  size_t n = 2;
  assert_int_equal(fd_recv(pair[1], text, sizeof(text), got, &n, 0), 2);
  assert_int_equal(n, 2);
  assert_int_equal(write(got[1], "x", 1), 1);
  assert_int_equal(read(pipe_fds[0], text, 1), 1);
  assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
  for (int i = 0; i < 2; i++) {
    close(pair[i]);
    close(got[i]);
    close(pipe_fds[i]);
  }
}

static char *make_root(char *tmpl)
{
  assert_non_null(mkdtemp(tmpl));
  int fd = open(tmpl, O_PATH | O_DIRECTORY);
  assert_int_equal(mkdirat(fd, "in", 0755), 0);
  assert_int_equal(symlinkat("/etc/passwd", fd, "abs"), 0);
  assert_int_equal(symlinkat("../../../../etc/passwd", fd, "up"), 0);
  close(fd);
  return tmpl;
}

static void links_and_dots_do_not_leave_the_root(void **state)
{
  char tmpl[] = "/tmp/cloche-unit-XXXXXX";
  int root = open(make_root(tmpl), O_PATH | O_DIRECTORY);
  assert_int_equal(path_open_in(root, "abs", O_RDONLY, 0), -ENOENT);
  assert_int_equal(path_open_in(root, "up", O_RDONLY, 0), -ENOENT);
  assert_int_equal(path_open_beneath(root, "abs", O_RDONLY, 0), -EXDEV);
  assert_int_equal(path_open_beneath(root, "in/../../x", O_RDONLY, 0), -EXDEV);
  int fd = path_open_beneath(root, "in/file", O_RDWR | O_CREAT, 0600);
  assert_true(fd >= 0);
  close(fd);
  close(root);
  assert_int_equal(path_remove_tree(AT_FDCWD, tmpl), 0);
  assert_int_equal(access(tmpl, F_OK), -1);
  assert_int_equal(access("/etc/passwd", F_OK), 0);
}

static void a_tree_deeper_than_any_path_is_removed(void **state)
{
  char tmpl[] = "/tmp/cloche-unit-XXXXXX";
  assert_non_null(mkdtemp(tmpl));
  int at = open(tmpl, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < 6000; i++) {
    assert_int_equal(mkdirat(at, "deeper", 0755), 0);
    int next = openat(at, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(next >= 0);
    if (i % 100 == 0)
      close(openat(at, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    close(at);
    at = next;
  }
  close(at);
  assert_int_equal(path_remove_tree(AT_FDCWD, tmpl), 0);
  assert_int_equal(access(tmpl, F_OK), -1);
}

static void files_are_replaced_whole(void **state)
{
  char path[] = "/tmp/cloche-unit-file-XXXXXX";
  close(mkstemp(path));
  assert_int_equal(file_write_atomic(path, "one", 3, 0600), 0);
  assert_int_equal(file_write_atomic(path, "two!", 4, 0600), 0);
  cleanup_buf struct buf b = BUF_INIT(100);
  assert_int_equal(file_read(path, &b), 0);
  assert_string_equal(buf_z(&b), "two!");
  unlink(path);
  assert_int_equal(file_read(path, &b), -ENOENT);
}

static void a_process_is_known_by_pid_and_start(void **state)
{
  struct proc_id me = {.pid = getpid()};
  assert_int_equal(proc_start_time(me.pid, &me.start), 0);
  int fd = proc_open(me);
  assert_true(fd >= 0);
  close(fd);
  me.start++;
  assert_int_equal(proc_open(me), -ESRCH);
}

static void errors_carry_the_value_and_wrap(void **state)
{
  struct err e = ERR_NONE;
  assert_int_equal(err_set(&e, ENOENT, "no template named '%s'", "x"), -ENOENT);
  assert_int_equal(err_wrap(&e, "create"), -ENOENT);
  assert_string_equal(e.msg, "create: no template named 'x'");
  errno = EACCES;
  assert_int_equal(err_errno(&e, "open %s", "/y"), -EACCES);
  assert_string_equal(e.msg, "open /y: Permission denied");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_map_keeps_what_was_put_through_growth_and_deletion),
      cmocka_unit_test(an_arena_refuses_past_its_limit),
      cmocka_unit_test(descriptors_travel_over_a_socket),
      cmocka_unit_test(links_and_dots_do_not_leave_the_root),
      cmocka_unit_test(a_tree_deeper_than_any_path_is_removed),
      cmocka_unit_test(files_are_replaced_whole),
      cmocka_unit_test(a_process_is_known_by_pid_and_start),
      cmocka_unit_test(errors_carry_the_value_and_wrap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
