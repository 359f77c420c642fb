/* SPDX-License-Identifier: Apache-2.0 */
/* jail_create_test.c - jails that are created before their root and program are known. Needs root. */
#include "box.h"
#include "jail/cgroup.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <cmocka.h>

#define PATIENCE_MS 20000

static struct test_host test_host;

static struct jail_spec spec_of(struct box *b, const char *id)
{
  struct jail_spec spec = test_spec(&test_host, b, id);
  spec.limits = (struct jail_limits){.cpus = 1, .memory = 64u << 20, .pids = 64};
  return spec;
}

static struct jail_spec namespaces_spec(const struct jail_spec *spec)
{
  struct jail_spec namespaces = *spec;
  namespaces.dir = NULL;
  namespaces.lowers = NULL;
  namespaces.argv = namespaces.env = NULL;
  return namespaces;
}

static void count_one(const char *id, void *arg)
{
  ++*(size_t *)arg;
}

static size_t groups(void)
{
  size_t n = 0;
  assert_int_equal(cgroup_host()->each(test_host.instance, count_one, &n), 0);
  return n;
}

static void a_box_started_in_a_created_jail_is_like_any_other(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  struct jail_spec spec = spec_of(&b, "raised"), namespaces = namespaces_spec(&spec);
  struct jail_created *created;
  int pair[2];
  assert_int_equal(jail_create(&namespaces, &created, &err), 0);
  assert_true(groups() > 0);
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  spec.boot_fd = pair[1];
  assert_int_equal(jail_start(&spec, created, &b.jail, &err), 0);
  close(pair[1]);
  b.talk = pair[0];
  assert_string_equal(box_ask(&b, "hello"), "ok pid 1 uid 0 gid 0 host testbox");
  const char *fds = box_ask(&b, "fds");
  static const char four[] = "ok 0=/dev/null 1=/dev/null 2=/dev/null 3=socket:[";
  assert_int_equal(strncmp(fds, four, strlen(four)), 0);
  assert_null(strstr(fds, " 4="));
  assert_string_equal(box_ask(&b, "read /etc/hostname"), "ok testbox\n");
  assert_string_equal(box_ask(&b, "breed 1000"), "ok 63 EAGAIN");
  box_close(&b);
  assert_int_equal(groups(), 0);
}

static void a_created_jail_that_is_not_started_leaves_nothing(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  struct jail_spec spec = spec_of(&b, "unused"), namespaces = namespaces_spec(&spec);
  for (int i = 0; i < 20; i++) {
    struct jail_created *created;
    assert_int_equal(jail_create(&namespaces, &created, &err), 0);
    jail_created_free(created);
    assert_int_equal(groups(), 0);
  }
  assert_int_equal(access(b.dir, F_OK), -1);
}

static void a_created_jail_started_with_a_missing_program_says_so_and_is_removed(void **state)
{
  static const char *const argv[] = {"/no/such/program", NULL};
  struct box b;
  struct err err = ERR_NONE;
  struct jail_spec spec = spec_of(&b, "astray"), namespaces = namespaces_spec(&spec);
  struct jail_created *created;
  struct jail j;
  assert_int_equal(jail_create(&namespaces, &created, &err), 0);
  spec.argv = argv;
  assert_int_equal(jail_start(&spec, created, &j, &err), -ENOENT);
  assert_non_null(strstr(err.msg, "/no/such/program"));
  assert_int_equal(groups(), 0);
  assert_int_equal(access(b.dir, F_OK), -1);
}

/* The process of a created jail shares nothing with its maker by then but the socket. */
static void a_created_jail_whose_parent_is_killed_exits(void **state)
{
  struct box b;
  int ready[2];
  struct jail_spec spec = spec_of(&b, "orphan"), namespaces = namespaces_spec(&spec);
  assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
  pid_t maker = fork();
  if (maker == 0) {
    struct jail_created *created;
    struct err err = ERR_NONE;
    char word = jail_create(&namespaces, &created, &err) ? 'n' : 'y';
    if (write(ready[1], &word, 1) == 1)
      pause();
    _exit(1);
  }
  char word = 0;
  close(ready[1]);
  assert_int_equal(read(ready[0], &word, 1), 1);
  assert_int_equal(word, 'y');
  close(ready[0]);
  pid_t orphan = 0;
  for (int i = 0; i < PATIENCE_MS / 5 && !orphan; i++, usleep(5000)) /* it enters its groups by itself */
    orphan = cgroup_host()->any(test_host.instance, b.id);
  assert_true(orphan > 0);
  assert_int_equal(kill(maker, SIGKILL), 0);
  assert_int_equal(waitpid(maker, NULL, 0), maker);
  for (int i = 0; i < PATIENCE_MS / 5 && cgroup_host()->any(test_host.instance, b.id); i++)
    usleep(5000);
  assert_int_equal(cgroup_host()->any(test_host.instance, b.id), 0);
  struct err err = ERR_NONE;
  assert_int_equal(jail_remove(test_host.instance, b.id, NULL, &err), 0);
  assert_int_equal(groups(), 0);
}

static void a_process_is_pinned_by_its_group_alone(void **state)
{
  struct box b;
  char dir[PATH_MAX];
  box_open(&test_host, &b, "pinned");
  assert_int_equal(cgroup_host()->freezer(test_host.instance, b.id, dir, sizeof(dir)), 0);
  int fd = cgroup_pidfd(dir, b.jail.init.pid);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(cgroup_pidfd(dir, getpid()), -ESRCH); /* as a number that went to another process meanwhile */
  box_close(&b);
}

static void bound_to(const struct box *b, char list[CPU_LIST_TEXT])
{
  assert_int_equal(cgroup_host()->cpus(test_host.instance, b->id, list, CPU_LIST_TEXT), 0);
}

/* Half of the boxes, all beside each other, are left by an owner who ended the others; then the daemon is restarted. */
static void new_boxes_go_where_the_fewest_are_also_after_a_restart(void **state)
{
  struct box old[4], new[2];
  char first[CPU_LIST_TEXT], list[CPU_LIST_TEXT], id[16];
  cpu_set_t host;
  struct err err = ERR_NONE;
  size_t kept = 0;
  sched_getaffinity(0, sizeof(host), &host);
  if (CPU_COUNT(&host) != 2) /* the count of boxes below is of two */
    skip();
  for (size_t i = 0; i < ARRAY_LEN(old); i++) {
    snprintf(id, sizeof(id), "old%zu", i);
    box_open(&test_host, &old[i], id);
    bound_to(&old[i], i ? list : first);
    if (i && strcmp(list, first) != 0)
      box_close(&old[i]);
    else
      old[kept++] = old[i];
  }
  assert_int_equal(kept, 1); /* a processor that is free comes first */
  box_open(&test_host, &old[kept], "second");
  bound_to(&old[kept], list);
  assert_string_not_equal(list, first);
  box_close(&old[kept]);
  cpu_share_release(test_host.instance, old[0].id); /* as a new process: it knows nothing */
  assert_int_equal(jail_instance_open(test_host.instance, &err), 0);
  box_open(&test_host, &new[0], "new0");
  bound_to(&new[0], list);
  assert_string_not_equal(list, first);
  box_open(&test_host, &new[1], "new1");
  box_close(&new[0]);
  box_open(&test_host, &new[0], "new2");
  bound_to(&new[0], list);
  assert_string_not_equal(list, first);
  box_close(&new[0]);
  box_close(&new[1]);
  box_close(&old[0]);
}

int main(int argc, char **argv)
{
  if (argc < 2)
    return 2;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_box_started_in_a_created_jail_is_like_any_other),
      cmocka_unit_test(a_created_jail_that_is_not_started_leaves_nothing),
      cmocka_unit_test(a_created_jail_started_with_a_missing_program_says_so_and_is_removed),
      cmocka_unit_test(a_created_jail_whose_parent_is_killed_exits),
      cmocka_unit_test(a_process_is_pinned_by_its_group_alone),
      cmocka_unit_test(new_boxes_go_where_the_fewest_are_also_after_a_restart),
  };
  test_host_open(&test_host, argv[1]);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  test_host_close(&test_host);
  return failed;
}
