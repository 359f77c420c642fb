/* The nursery, played by the test: how it is called, births, refusals, exits and its own death; and the process from outside that
 * is the first birth itself. */
#include "agent/interpreter/kernel_nursery.h"
#include "agent/reap.h"
#include "agent/spawn.h"
#include "unit.h"
#include "wire/boot_packet.h"
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static uv_loop_t loop;
static struct kernel_host host = {.loop = &loop};
static char *none[] = {NULL}, *argv[] = {"/bin/sh", "-c", "exit 7", NULL};
static const struct kernel_spec spec = {.language = "nested", .aliases = none, .argv = argv, .requires = none, .needs = "", .nursery = true};
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

static void turn(int ms)
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

static int bell = -1;

static int quiet(void **state)
{
  struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "\0" BOOT_BELL};
  (void)state;
  spawn_prepare();
  signal(SIGPIPE, SIG_IGN);
  uv_loop_init(&loop);
  bell = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(bell, (struct sockaddr *)&at, offsetof(struct sockaddr_un, sun_path) + sizeof(BOOT_BELL)), 0);
  nursery = -1;
  readies = 0;
  cause[0] = 0;
  return 0;
}

/* Answers the bell: the socket that came with the ring is the nursery's. */
static void answer_bell(void)
{
  char text[32];
  size_t n = 1;
  ssize_t got = fd_recv(bell, text, sizeof(text), &nursery, &n, MSG_DONTWAIT);
  assert_int_equal(got, strlen("nested"));
  assert_memory_equal(text, "nested", strlen("nested"));
  assert_int_equal(n, 1);
}

/* A kernel that is asked of a nursery which is there. */
static struct kernel *kernel_of_nursery(void)
{
  struct kernel *k = kernel_native_new(&host, &spec, &listener, NULL, NULL);
  answer_bell();
  say(nursery, "{\"ev\":\"ready\",\"pid\":5,\"nursery\":true}\n");
  turn(2);
  return k;
}

static int closed(void **state)
{
  (void)state;
  nursery_end_all();
  turn(5);
  if (nursery >= 0)
    close(nursery);
  close(bell);
  return uv_loop_close(&loop);
}

/* Takes the next fork request with its descriptors; the number it asks under. */
static long long take_fork(int fds[3])
{
  char text[256];
  size_t n = 3;
  turn(3);
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
  turn(3);
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

static void a_birth_waits_until_the_nursery_is_loaded(void **state)
{
  (void)state;
  int fds[3];
  char byte;
  struct kernel *k = kernel_native_new(&host, &spec, &listener, NULL, NULL);
  answer_bell();
  turn(5);
  assert_int_equal(recv(nursery, &byte, 1, MSG_DONTWAIT), -1);
  say(nursery, "{\"ev\":\"ready\",\"pid\":5,\"nursery\":true}\n");
  pid_t pid = sleeper();
  answer(take_fork(fds), pid);
  say(fds[0], "{\"ev\":\"ready\",\"pid\":9}\n");
  turn(5);
  assert_int_equal(readies, 1);
  kernel_end(k);
  turn(5);
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
  turn(20);
  assert_non_null(strstr(cause, "signal 11"));
  kill(pid, SIGKILL);
  kernel_end(k);
  turn(5);
}

static void a_refused_birth_becomes_a_process_of_its_own(void **state)
{
  (void)state;
  int fds[3];
  struct kernel *k = kernel_of_nursery();
  long long id = take_fork(fds);
  close_all(fds);
  answer(id, -1);
  turn(300);
  assert_non_null(strstr(cause, "status 7"));
  kernel_end(k);
  turn(5);
}

/* The birth that waits for it becomes a plain process, whose program here ends with status 7. */
static void nursery_dies(struct kernel *k)
{
  close(nursery);
  nursery = -1;
  turn(300);
  assert_non_null(strstr(cause, "status 7"));
  kernel_end(k);
  turn(5);
}

static void a_nursery_that_dies_leaves_births_to_plain_processes(void **state)
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
  answer_bell();
  nursery_dies(k);
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
  turn(5);
  assert_int_equal(readies, 1);
  assert_int_equal(recv(nursery, &byte, 1, MSG_DONTWAIT), 0); /* nothing of outside stays open */
  kill(pid, SIGTERM);
  turn(20);
  assert_non_null(strstr(cause, "signal 15"));
  kernel_end(k);
  turn(5);
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
  answer_bell();
  say(nursery, "{\"ev\":\"ready\",\"pid\":5,\"nursery\":true}\n");
  answer(take_fork(more), pids[1]);
  say(more[0], "{\"ev\":\"ready\",\"pid\":11}\n");
  turn(5);
  assert_int_equal(readies, 1);
  kernel_end(k);
  kernel_end(second);
  turn(5);
  close_all(fds);
  close_all(more);
}

/* Names without a file belong to a network: one of our own, or another test's bell would be heard. */
static void alone(void)
{
  if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
    fprintf(stderr, "in the host's network: %s\n", strerror(errno));
}

int main(void)
{
  alone();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_birth_waits_until_the_nursery_is_loaded, quiet, closed),
      cmocka_unit_test_setup_teardown(an_exit_told_by_the_nursery_is_the_cause_of_death, quiet, closed),
      cmocka_unit_test_setup_teardown(a_refused_birth_becomes_a_process_of_its_own, quiet, closed),
      cmocka_unit_test_setup_teardown(a_nursery_that_dies_leaves_births_to_plain_processes, quiet, closed),
      cmocka_unit_test_setup_teardown(a_child_nobody_waits_for_any_more_is_killed, quiet, closed),
      cmocka_unit_test_setup_teardown(a_ring_nobody_follows_ends_in_a_process_of_our_own, quiet, closed),
      cmocka_unit_test_setup_teardown(the_first_kernel_is_the_process_that_came, quiet, closed),
      cmocka_unit_test_setup_teardown(the_second_kernel_gets_a_nursery, quiet, closed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
