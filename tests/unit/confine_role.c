/* SPDX-License-Identifier: Apache-2.0 */
/* confine_role.c - what a process can and can't do once it has given up its rights. Each case is a child of its own,
 * which ends with the number of the line that was wrong. */
#include "unit.h"

#include "confine/confine.h"
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define UID     64123
#define NEED(x) ((x) ? (void)0 : _exit(__LINE__ % 255 + 1))

static const int calls[] = {SCMP_SYS(openat), SCMP_SYS(newfstatat), SCMP_SYS(connect), SCMP_SYS(getdents64)};
static const struct confine_file files[] = {{"/etc/hosts", NULL}, {"/etc/word", "one\n"}, {"/etc/no-such", NULL}};
static const struct confine_socket sockets[] = {{AF_INET, SOCK_STREAM, -1}};
static const struct confine_role reader = {
    .name = "cloche-test",
    .calls = calls,
    .ncalls = ARRAY_LEN(calls),
    .sockets = sockets,
    .nsockets = ARRAY_LEN(sockets),
    .files = files,
    .nfiles = ARRAY_LEN(files),
    .fds_max = 64,
    .memory_max = (uint64_t)1 << 30,
};
static const struct confine_role bare = {.name = "cloche-test"};

static void in_child(void (*body)(void))
{
  if (geteuid() != 0)
    skip();
  fflush(NULL);
  pid_t pid = fork();
  if (!pid) {
    body();
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void confine(const struct confine_role *role)
{
  struct err err = ERR_NONE;
  NEED(!confine_rights(role, UID, &err));
  NEED(!confine_filter(role, UID, &err));
}

static int names(const char *path)
{
  int n = 0;
  DIR *d = opendir(path);
  NEED(d);
  while (readdir(d))
    n++;
  return n - 2; /* . and .. */
}

static void see_files(void)
{
  confine(&reader);
  char text[8] = "";
  int fd = open("/etc/word", O_RDONLY);
  NEED(fd >= 0 && read(fd, text, sizeof(text)) == 4 && !strcmp(text, "one\n"));
  NEED(open("/etc/hosts", O_RDONLY) >= 0);
  NEED(names("/") == 1 && names("/etc") == 2);
  NEED(open("/etc/new", O_WRONLY | O_CREAT, 0600) < 0 && errno == EROFS);
  NEED(open("/../../proc/self/status", O_RDONLY) < 0 && errno == ENOENT);
}

static void the_root_holds_the_named_files_and_nothing_else(void **state)
{
  in_child(see_files);
}

static void log_to(const char *path, int flags)
{
  int fd = open(path, flags | O_CLOEXEC, 0600);
  NEED(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
}

static void see_identity(void)
{
  log_to("/dev/null", O_WRONLY);
  struct err err = ERR_NONE;
  struct rlimit l;
  NEED(!confine_rights(&reader, UID, &err));
  NEED(getuid() == UID && geteuid() == UID && getgid() == UID && getgroups(0, NULL) == 0);
  NEED(setuid(0) && chroot("/") && unshare(CLONE_NEWNS));
  NEED(!getrlimit(RLIMIT_NOFILE, &l) && l.rlim_max == 64);
  NEED(!getrlimit(RLIMIT_FSIZE, &l) && l.rlim_max == 0);
}

static void it_is_another_user_without_a_way_back(void **state)
{
  in_child(see_identity);
}

/* A file that the role was given beside its log. */
static int some_file(void)
{
  int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  NEED(fd >= 0);
  return fd;
}

static void write_no_file(void)
{
  log_to("/dev/null", O_WRONLY);
  int fd = some_file();
  confine(&reader);
  NEED(write(fd, "x", 1) < 0 && errno == EFBIG);
  NEED(write(STDERR_FILENO, "x", 1) == 1);
}

static void a_file_that_may_not_grow_costs_a_write_and_not_the_process(void **state)
{
  in_child(write_no_file);
}

static void write_the_log(void)
{
  NEED(dup2(some_file(), STDERR_FILENO) == STDERR_FILENO);
  confine(&reader);
  NEED(write(STDERR_FILENO, "line\n", 5) == 5);
}

static void a_log_that_is_a_file_is_written(void **state)
{
  in_child(write_the_log);
}

static void try_sockets(void)
{
  confine(&reader);
  NEED(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) >= 0);
  NEED(socket(AF_INET, SOCK_DGRAM, 0) < 0 && errno == EPERM);
  NEED(socket(AF_INET6, SOCK_STREAM, 0) < 0 && errno == EPERM);
  NEED(socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM);
  NEED(socket(AF_NETLINK, SOCK_RAW, 0) < 0 && errno == EPERM);
}

static void only_the_listed_kinds_of_sockets_can_be_created(void **state)
{
  in_child(try_sockets);
}

static void try_calls(void)
{
  confine(&bare);
  NEED(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
  NEED(open("/", O_RDONLY) < 0 && errno == EPERM);
  NEED(fork() < 0 && errno == EPERM);
  NEED(kill(getppid(), 0) < 0 && errno == EPERM);
  NEED(execl("/bin/true", "true", NULL) < 0 && errno == EPERM);
}

static void a_role_that_asks_for_nothing_opens_starts_and_signals_nothing(void **state)
{
  in_child(try_calls);
}

static sem_t started, filtered;

static void try_ring(void)
{
  char params[120] = "";
  struct err err = ERR_NONE;
  NEED(confine_no_rings(&err) == 0);
  NEED(syscall(SYS_io_uring_setup, 4, params) == -1 && errno == ENOSYS);
  NEED(open("/", O_RDONLY | O_DIRECTORY) >= 0);
  confine(&bare);
  NEED(syscall(SYS_io_uring_setup, 4, params) == -1);
}

static void a_role_has_no_ring(void **state)
{
  in_child(try_ring);
}

static void *other_thread(void *arg)
{
  sem_post(&started);
  sem_wait(&filtered);
  NEED(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
  NEED(getuid() == UID);
  return NULL;
}

static void filter_after_threads(void)
{
  struct err err = ERR_NONE;
  pthread_t t;
  sem_init(&started, 0, 0);
  sem_init(&filtered, 0, 0);
  NEED(!confine_rights(&bare, UID, &err));
  NEED(!pthread_create(&t, NULL, other_thread, NULL));
  sem_wait(&started);
  NEED(!confine_filter(&bare, UID, &err));
  sem_post(&filtered);
  pthread_join(t, NULL);
}

static void the_filter_is_of_threads_that_run_already(void **state)
{
  in_child(filter_after_threads);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_root_holds_the_named_files_and_nothing_else),
      cmocka_unit_test(it_is_another_user_without_a_way_back),
      cmocka_unit_test(a_file_that_may_not_grow_costs_a_write_and_not_the_process),
      cmocka_unit_test(a_log_that_is_a_file_is_written),
      cmocka_unit_test(only_the_listed_kinds_of_sockets_can_be_created),
      cmocka_unit_test(a_role_that_asks_for_nothing_opens_starts_and_signals_nothing),
      cmocka_unit_test(the_filter_is_of_threads_that_run_already),
      cmocka_unit_test(a_role_has_no_ring),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
