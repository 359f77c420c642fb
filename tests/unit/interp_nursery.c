/* The nursery, played by the test: births, refusals, exits and its own death. */
#include "agent/kernel_nursery.h"
#include "agent/reap.h"
#include "agent/spawn.h"
#include "unit.h"
#include <stdio.h>
#include <signal.h>
#include <sys/socket.h>
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

static int opened(void **state)
{
  int outside[2], pair[2];
  (void)state;
  spawn_prepare();
  signal(SIGPIPE, SIG_IGN);
  uv_loop_init(&loop);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, outside), 0);
  nursery = pair[1];
  assert_int_equal(nursery_adopt(&host, &spec, outside[0], 1), 0);
  assert_int_equal(fd_send(outside[1], "s", 1, &pair[0], 1, 0), 1);
  close(outside[1]);
  close(pair[0]);
  readies = 0;
  cause[0] = 0;
  return 0;
}

static int closed(void **state)
{
  (void)state;
  nursery_end_all();
  turn(5);
  if (nursery >= 0)
    close(nursery);
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
  say(nursery, "{\"ev\":\"ready\",\"pid\":5,\"nursery\":true}\n");
  turn(2);
  struct kernel *k = kernel_native_new(&host, &spec, &listener, NULL, NULL);
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
  say(nursery, "{\"ev\":\"ready\",\"pid\":5,\"nursery\":true}\n");
  turn(2);
  struct kernel *k = kernel_native_new(&host, &spec, &listener, NULL, NULL);
  long long id = take_fork(fds);
  close_all(fds);
  answer(id, -1);
  turn(300);
  assert_non_null(strstr(cause, "status 7"));
  kernel_end(k);
  turn(5);
}

static void a_nursery_that_dies_leaves_births_to_plain_processes(void **state)
{
  (void)state;
  struct kernel *k = kernel_native_new(&host, &spec, &listener, NULL, NULL);
  close(nursery);
  nursery = -1;
  turn(300);
  assert_non_null(strstr(cause, "status 7"));
  kernel_end(k);
  turn(5);
}

static void a_child_nobody_waits_for_any_more_is_killed(void **state)
{
  (void)state;
  int fds[3], status;
  say(nursery, "{\"ev\":\"ready\",\"pid\":5,\"nursery\":true}\n");
  turn(2);
  struct kernel *k = kernel_native_new(&host, &spec, &listener, NULL, NULL);
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

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_birth_waits_until_the_nursery_is_loaded, opened, closed),
      cmocka_unit_test_setup_teardown(an_exit_told_by_the_nursery_is_the_cause_of_death, opened, closed),
      cmocka_unit_test_setup_teardown(a_refused_birth_becomes_a_process_of_its_own, opened, closed),
      cmocka_unit_test_setup_teardown(a_nursery_that_dies_leaves_births_to_plain_processes, opened, closed),
      cmocka_unit_test_setup_teardown(a_child_nobody_waits_for_any_more_is_killed, opened, closed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
