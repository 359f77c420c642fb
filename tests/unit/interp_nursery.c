/* SPDX-License-Identifier: Apache-2.0 */
/* The nursery, played by the test: how it is called, forks, refusals, exits and its own death; and the process from
 * outside that is the first fork itself. */
#include "agent/interpreter/kernel_nursery.h"
#include "agent/reap.h"
#include "agent/spawn.h"
#include "unit.h"
#include "wire/boot_packet.h"
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static uv_loop_t loop;
static struct kernel_host host = {.loop = &loop};
static char *none[] = {NULL}, *argv[] = {"/bin/sh", "-c", "exit 7", NULL};
static const struct kernel_spec spec = {
    .language = "nested", .aliases = none, .argv = argv, .requires = none, .needs = "", .nursery = true};
static int nursery; /* the test's end of its socket */
static int readies;
static char cause[256];

static void on_ready(void *arg)
{
  (void)arg;
  readies++;
}

static void on_death(void *arg, const char *why)
{
  (void)arg;
  assert_int_equal(str_copyz(str_of(why), cause, sizeof(cause)), 0);
}

static const struct kernel_listener listener = {.ready = on_ready, .death = on_death};

static void run_loop(int ms)
{
  for (int64_t end = clock_mono_us() + ms * 1000; clock_mono_us() < end; usleep(200)) {
    reap_now();
    uv_run(&loop, UV_RUN_NOWAIT);
  }
}

static void say(int fd, const char *text)
{
  assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static int nursery_listener =
    -1; /* where nurseries come from: made outside the tests' process namespace, as the warden's is */

static int listener_open(const char *language)
{
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  int n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, BOOT_NURSERY_NAME "%s", language);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
      listen(fd, 4))
    return -1;
  return fd;
}

static int quiet(void **state)
{
  (void)state;
  spawn_prepare();
  signal(SIGPIPE, SIG_IGN);
  uv_loop_init(&loop);
  nursery = -1;
  readies = 0;
  cause[0] = 0;
  return 0;
}

/* Accepts a nursery request: the connection is the nursery's. */
static void answer_request(void)
{
  nursery = accept4(nursery_listener, NULL, NULL, SOCK_CLOEXEC);
  assert_true(nursery >= 0);
}

/* A kernel that is asked of a nursery which is there. */
static struct kernel *kernel_of_nursery(void)
{
  struct kernel *k = kernel_native_new(&host, &spec, &listener, NULL, NULL);
  answer_request();
  say(nursery, "{\"ev\":\"ready\",\"pid\":5,\"nursery\":true}\n");
  run_loop(2);
  return k;
}

static int closed(void **state)
{
  (void)state;
  nursery_end_all();
  run_loop(5);
  if (nursery >= 0)
    close(nursery);
  for (int fd; (fd = accept4(nursery_listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) /* what nobody answered */
    close(fd);
  return uv_loop_close(&loop);
}

/* Takes the next fork request with its descriptors; the number it asks under. */
static long long take_fork(int fds[3])
{
  char text[256];
  size_t n = 3;
  run_loop(3);
  ssize_t got = fd_recv(nursery, text, sizeof(text) - 1, fds, &n, MSG_DONTWAIT);
  assert_true(got > 0);
  assert_int_equal(n, 3);
  text[got] = 0;
  const char *id = strstr(text, "{\"op\":\"fork\",\"id\":");
  assert_non_null(id);
  return strtoll(id + strlen("{\"op\":\"fork\",\"id\":"), NULL, 10);
}

static void answer(long long id, long long pid)
{
  char text[128];
  snprintf(text, sizeof(text), "{\"ev\":\"forked\",\"id\":%lld,\"pid\":%lld}\n", id, pid);
  say(nursery, text);
  run_loop(3);
}

static pid_t sleeper(void)
{
  pid_t pid = fork();
  if (pid == 0) {
    setsid();
    for (;;)
      pause();
  }
  return pid;
}

static void close_all(const int fds[3])
{
  for (int i = 0; i < 3; i++)
    close(fds[i]);
}

static void a_fork_waits_until_the_nursery_is_loaded(void **state)
{
  (void)state;
  int fds[3];
  char byte;
  struct kernel *k = kernel_native_new(&host, &spec, &listener, NULL, NULL);
  answer_request();
  run_loop(5);
  assert_int_equal(recv(nursery, &byte, 1, MSG_DONTWAIT), -1);
  say(nursery, "{\"ev\":\"ready\",\"pid\":5,\"nursery\":true}\n");
  pid_t pid = sleeper();
  answer(take_fork(fds), pid);
  say(fds[0], "{\"ev\":\"ready\",\"pid\":9}\n");
  run_loop(5);
  assert_int_equal(readies, 1);
  kernel_end(k);
  run_loop(5);
  close_all(fds);
}

static void an_exit_told_by_the_nursery_is_the_cause_of_death(void **state)
{
  (void)state;
  int fds[3];
  char text[128];
  struct kernel *k = kernel_of_nursery();
  pid_t pid = sleeper();
  answer(take_fork(fds), pid);
  close_all(fds);
  snprintf(text, sizeof(text), "{\"ev\":\"exit\",\"pid\":%d,\"status\":%d}\n", (int)pid, 11);
  say(nursery, text);
  run_loop(20);
  assert_non_null(strstr(cause, "signal 11"));
  kill(pid, SIGKILL);
  kernel_end(k);
  run_loop(5);
}

static void a_refused_fork_becomes_a_process_of_its_own(void **state)
{
  (void)state;
  int fds[3];
  struct kernel *k = kernel_of_nursery();
  long long id = take_fork(fds);
  close_all(fds);
  answer(id, -1);
  run_loop(300);
  assert_non_null(strstr(cause, "status 7"));
  kernel_end(k);
  run_loop(5);
}

/* The fork that waits for it becomes a plain process, whose program here ends with status 7. */
static void nursery_dies(struct kernel *k)
{
  close(nursery);
  nursery = -1;
  run_loop(300);
  assert_non_null(strstr(cause, "status 7"));
  kernel_end(k);
  run_loop(5);
}

static void a_nursery_that_dies_leaves_forks_to_plain_processes(void **state)
{
  (void)state;
  int fds[3];
  struct kernel *k = kernel_of_nursery();
  take_fork(fds);
  close_all(fds);
  nursery_dies(k);
}

static void a_child_nobody_waits_for_any_more_is_killed(void **state)
{
  (void)state;
  int fds[3], status;
  struct kernel *k = kernel_of_nursery();
  long long id = take_fork(fds);
  kernel_end(k);
  pid_t pid = sleeper();
  char text[128];
  snprintf(text, sizeof(text), "{\"ev\":\"forked\",\"id\":%lld,\"pid\":%d}\n", id, (int)pid);
  say(nursery, text);
  for (int i = 0; i < 50; i++)
    uv_run(&loop, UV_RUN_NOWAIT);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(WTERMSIG(status), SIGKILL);
  close_all(fds);
}

static void a_ring_nobody_follows_ends_in_a_process_of_our_own(void **state)
{
  (void)state;
  struct kernel *k = kernel_native_new(&host, &spec, &listener, NULL, NULL);
  answer_request();
  nursery_dies(k);
}

/* Any process of the box may listen under that name before the warden does; it is not given a kernel's pipes. */
static void a_nursery_listener_of_the_box_itself_is_not_believed(void **state)
{
  (void)state;
  static const struct kernel_spec other = {
      .language = "false", .aliases = none, .argv = argv, .requires = none, .needs = "", .nursery = true};
  char byte;
  cleanup_fd int false_listener = listener_open("false");
  assert_true(false_listener >= 0);
  struct kernel *k = kernel_native_new(&host, &other, &listener, NULL, NULL);
  cleanup_fd int came = accept4(false_listener, NULL, NULL, SOCK_CLOEXEC);
  assert_true(came >= 0);
  assert_int_equal(recv(came, &byte, 1, MSG_DONTWAIT), 0); /* it has left without a word */
  run_loop(100);
  kernel_end(k);
  run_loop(20);
}

/* The socket of a process on its way from outside. */
static void expect_visitor(void)
{
  int pair[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  nursery = pair[1];
  assert_int_equal(nursery_adopt(&host, &spec, pair[0]), 0);
}

static void the_first_kernel_is_the_process_that_came(void **state)
{
  (void)state;
  int fds[3];
  char byte;
  pid_t pid = sleeper(); /* first, or it would hold our ends open */
  expect_visitor();
  struct kernel *k = kernel_native_new(&host, &spec, &listener, NULL, NULL);
  answer(take_fork(fds), pid);
  say(fds[0], "{\"ev\":\"ready\",\"pid\":9}\n");
  run_loop(5);
  assert_int_equal(readies, 1);
  assert_int_equal(recv(nursery, &byte, 1, MSG_DONTWAIT), 0); /* nothing of outside stays open */
  kill(pid, SIGTERM);
  for (int i = 0; i < 500 && !strstr(cause, "signal 15"); i++)
    run_loop(5);
  assert_non_null(strstr(cause, "signal 15"));
  kernel_end(k);
  run_loop(5);
  close_all(fds);
}

static void the_second_kernel_gets_a_nursery(void **state)
{
  (void)state;
  int fds[3], more[3];
  expect_visitor();
  struct kernel *k = kernel_native_new(&host, &spec, &listener, NULL, NULL);
  struct kernel *second = kernel_native_new(&host, &spec, &listener, NULL, NULL);
  pid_t pids[2] = {sleeper(), sleeper()};
  answer(take_fork(fds), pids[0]);
  close(nursery);
  answer_request();
  say(nursery, "{\"ev\":\"ready\",\"pid\":5,\"nursery\":true}\n");
  answer(take_fork(more), pids[1]);
  say(more[0], "{\"ev\":\"ready\",\"pid\":11}\n");
  run_loop(5);
  assert_int_equal(readies, 1);
  kernel_end(k);
  kernel_end(second);
  run_loop(5);
  close_all(fds);
  close_all(more);
}

/* Names without a file belong to a network: one of our own, or another test could accept our requests. */
static void alone(void)
{
  if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
    fprintf(stderr, "in the host's network: %s\n", strerror(errno));
}

/* The tests run in a process namespace of their own, in which the owner of the listener has no pid. */
static void inside(void)
{
  int status = 0;
  nursery_listener = listener_open("nested");
  if (nursery_listener < 0 || unshare(CLONE_NEWPID)) {
    perror("a process namespace");
    exit(77); /* skipped: it takes rights */
  }
  for (int depth = 0; depth < 2; depth++) { /* not as its first process */
    pid_t pid = fork();
    if (pid == 0)
      continue;
    waitpid(pid, &status, 0);
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
}

int main(void)
{
  alone();
  inside();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_fork_waits_until_the_nursery_is_loaded, quiet, closed),
      cmocka_unit_test_setup_teardown(an_exit_told_by_the_nursery_is_the_cause_of_death, quiet, closed),
      cmocka_unit_test_setup_teardown(a_refused_fork_becomes_a_process_of_its_own, quiet, closed),
      cmocka_unit_test_setup_teardown(a_nursery_that_dies_leaves_forks_to_plain_processes, quiet, closed),
      cmocka_unit_test_setup_teardown(a_child_nobody_waits_for_any_more_is_killed, quiet, closed),
      cmocka_unit_test_setup_teardown(a_ring_nobody_follows_ends_in_a_process_of_our_own, quiet, closed),
      cmocka_unit_test_setup_teardown(a_nursery_listener_of_the_box_itself_is_not_believed, quiet, closed),
      cmocka_unit_test_setup_teardown(the_first_kernel_is_the_process_that_came, quiet, closed),
      cmocka_unit_test_setup_teardown(the_second_kernel_gets_a_nursery, quiet, closed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
