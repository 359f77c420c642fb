/* SPDX-License-Identifier: Apache-2.0 */
/* warden_identity.c - an agent that hangs up, or says nothing, while it is told who its box is: the loop goes on, and
 * the end is told once and in time. The agent is a socket of the test's, in a network namespace of its own. Needs root.
 */
#include "unit.h"

#include "warden/core/identity.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define AGENT_PORT 49983

static uv_loop_t loop;
static struct jail jail = {.pidfd = -1, .netns = -1};
static int listener = -1;
static int told, result;
static struct err why;

/* Buffers of this namespace, so small that most of what is sent waits. */
static int small_buffers(void)
{
  static const char *const files[] = {"/proc/sys/net/ipv4/tcp_wmem", "/proc/sys/net/ipv4/tcp_rmem"};
  for (size_t i = 0; i < ARRAY_LEN(files); i++) {
    cleanup_fd int fd = open(files[i], O_WRONLY | O_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, "4096 16384 16384", 16))
      return -1;
  }
  return 0;
}

static int open_namespace(void **state)
{
  struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(AGENT_PORT)};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  uv_loop_init(&loop);
  if (geteuid() != 0 || unshare(CLONE_NEWNET))
    return 0; /* the tests are skipped */
  jail.netns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (small_buffers())
    return 0;
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return jail.netns < 0 || ioctl(listener, SIOCSIFFLAGS, &lo) || bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
         listen(listener, 4);
}

static void done(void *arg, int r, const struct err *err)
{
  told++;
  result = r;
  why = *err;
}

/* More than the sockets hold between them, so that some of it waits. */
static void begin(struct row_box *row, unsigned seconds)
{
  static char init[900000];
  memset(init, ' ', sizeof(init) - 1);
  init[0] = '{';
  init[sizeof(init) - 2] = '}';
  *row = (struct row_box){.init = init};
  told = 0;
  identity_begin(&loop, &jail, "secret", row, STR_NONE, seconds, done, NULL);
  assert_int_equal(told, 0);
}

static int64_t cpu_us(void)
{
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000ll + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

static void turn_until_told(void)
{
  for (int64_t until = clock_mono_us() + 20000000; !told && clock_mono_us() < until;)
    uv_run(&loop, UV_RUN_ONCE);
}

static void an_agent_that_hangs_up_without_reading_is_left_at_once(void **state)
{
  struct row_box row;
  if (listener < 0)
    skip();
  int64_t began = clock_mono_us(), used = cpu_us();
  begin(&row, 10);
  __attribute__((unused)) cleanup_fd int agent = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  assert_true(agent >= 0);
  assert_int_equal(shutdown(agent, SHUT_WR), 0); /* it says nothing more, and reads nothing */
  turn_until_told();
  assert_int_equal(told, 1);
  assert_int_equal(result, -ECONNRESET);
  assert_non_null(strstr(why.msg, "does not answer"));
  assert_true(clock_mono_us() - began < 5000000);
  assert_true(cpu_us() - used < 2000000);
  uv_run(&loop, UV_RUN_NOWAIT);
}

static void an_agent_that_reads_and_says_nothing_is_waited_for_without_work(void **state)
{
  struct row_box row;
  if (listener < 0)
    skip();
  begin(&row, 1);
  __attribute__((unused)) cleanup_fd int agent = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  int64_t used = cpu_us();
  turn_until_told();
  assert_int_equal(told, 1);
  assert_int_equal(result, -ETIMEDOUT);
  assert_true(cpu_us() - used < 500000); /* the loop slept */
  uv_run(&loop, UV_RUN_NOWAIT);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_agent_that_hangs_up_without_reading_is_left_at_once),
      cmocka_unit_test(an_agent_that_reads_and_says_nothing_is_waited_for_without_work),
  };
  return cmocka_run_group_tests(tests, open_namespace, NULL);
}
