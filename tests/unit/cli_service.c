/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor towards a service manager: what it says, which sockets it takes over. The test is the manager. */
#include "unit.h"

#include "cli/listener.h"
#include "cli/service_manager.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define GIVEN_MAX 8
#define GATES     2

static int manager_end = -1; /* of the notification socket */

/* A socket that the server under test writes to; its name is abstract and carries our pid. */
static int set_up(void **state)
{
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  char name[64];
  int n = snprintf(name, sizeof(name), "@cloche-unit-service-%d", getpid());
  memcpy(a.sun_path + 1, name + 1, (size_t)n - 1);
  manager_end = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  assert_int_equal(
      0, bind(manager_end, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n)));
  setenv("NOTIFY_SOCKET", name, 1);
  return 0;
}

static int tear_down(void **state)
{
  close(manager_end);
  unsetenv("NOTIFY_SOCKET");
  return 0;
}

/* Descriptors go to 3 and on, as a manager hands them over. Those of the program that are there move up. */
static void hand_over(const int *fds, const char *names, size_t n)
{
  int high[GIVEN_MAX];
  char text[32];
  manager_end = fcntl(manager_end, F_DUPFD_CLOEXEC, 200);
  for (size_t i = 0; i < n; i++)
    high[i] = fcntl(fds[i], F_DUPFD, 100);
  for (size_t i = 0; i < n; i++) {
    dup2(high[i], 3 + (int)i);
    close(high[i]);
  }
  snprintf(text, sizeof(text), "%d", getpid());
  setenv("LISTEN_PID", text, 1);
  snprintf(text, sizeof(text), "%zu", n);
  setenv("LISTEN_FDS", text, 1);
  setenv("LISTEN_FDNAMES", names, 1);
}

/* The next message, and its descriptor. */
static int heard(char *text, size_t size)
{
  int fd = -1;
  size_t n = 1;
  ssize_t k = fd_recv(manager_end, text, size - 1, &fd, &n, MSG_DONTWAIT);
  text[MAX(k, 0)] = 0;
  return k > 0 && n == 1 ? fd : -1;
}

static int listening(const char *host, int type)
{
  struct sockaddr_in a = {.sin_family = AF_INET};
  int fd = socket(AF_INET, type, 0);
  inet_pton(AF_INET, host, &a.sin_addr);
  assert_int_equal(0, bind(fd, (struct sockaddr *)&a, sizeof(a)));
  if (type == SOCK_STREAM)
    assert_int_equal(0, listen(fd, 8));
  return fd;
}

static uint16_t port_of(int fd)
{
  struct sockaddr_in a;
  socklen_t n = sizeof(a);
  assert_int_equal(0, getsockname(fd, (struct sockaddr *)&a, &n));
  return ntohs(a.sin_port);
}

static int connected(uint16_t port)
{
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(0, connect(fd, (struct sockaddr *)&a, sizeof(a)));
  return fd;
}

/* Each case in a child: descriptors 3 and on are the case's own. */
static void in_child(void (*body)(void))
{
  pid_t pid = fork();
  if (!pid) {
    body();
    _exit(0);
  }
  int status;
  assert_int_equal(pid, waitpid(pid, &status, 0));
  assert_int_equal(0, status);
}

static void nobody(void)
{
  struct service_manager m;
  struct err err = ERR_NONE;
  char host[LISTEN_HOST_SIZE];
  uint16_t port;
  int fds[GATES];
  unsetenv("NOTIFY_SOCKET");
  service_open(&m);
  assert_false(service_here(&m));
  assert_int_equal(0, listeners_open(&m, "listen", "127.0.0.1:0", GATES, fds, host, &port, &err));
  assert_int_equal(port, port_of(fds[0]));
  assert_int_equal(port, port_of(fds[1]));
  assert_int_equal(700, service_alive(&m, 700));
}

static void without_a_service_manager_sockets_are_opened(void **state)
{
  in_child(nobody);
}

static void told(void)
{
  struct service_manager m;
  char text[256];
  setenv("WATCHDOG_USEC", "100000", 1);
  setenv("LISTEN_PID", "1", 1); /* another's */
  setenv("LISTEN_FDS", "1", 1);
  service_open(&m);
  assert_null(getenv("NOTIFY_SOCKET"));
  assert_null(getenv("LISTEN_FDS"));
  assert_null(getenv("WATCHDOG_USEC"));
  assert_int_equal(0, m.given.n);
  service_tell(&m, "READY=1\nSTATUS=serving at %s", "there");
  heard(text, sizeof(text));
  assert_string_equal("READY=1\nSTATUS=serving at there", text);
  int wait = service_alive(&m, 60000);
  assert_in_range(wait, 1, 51);
  heard(text, sizeof(text));
  assert_string_equal("WATCHDOG=1", text);
  assert_in_range(service_alive(&m, 60000), 1, 51);
  heard(text, sizeof(text));
  assert_string_equal("", text);
}

static void readiness_and_life_are_told_and_the_variables_go(void **state)
{
  in_child(told);
}

static void kept_sockets(bool other_address)
{
  struct service_manager m, next;
  struct err err = ERR_NONE;
  char text[256], host[LISTEN_HOST_SIZE], address[64], notify[64];
  uint16_t port, again;
  int fds[GATES], stored[GATES], accepted = -1;
  snprintf(notify, sizeof(notify), "%s", getenv("NOTIFY_SOCKET"));
  service_open(&m);
  assert_int_equal(0, listeners_open(&m, "listen", "127.0.0.1:0", GATES, fds, host, &port, &err));
  stored[0] = heard(text, sizeof(text));
  assert_string_equal("FDSTORE=1\nFDNAME=kept-listen-0", text);
  stored[1] = heard(text, sizeof(text));
  assert_string_equal("FDSTORE=1\nFDNAME=kept-listen-1", text);
  close(fds[0]); /* the server ends; a client comes before the next one begins */
  close(fds[1]);
  int client = connected(port);
  setenv("NOTIFY_SOCKET", notify, 1);
  hand_over(stored, "kept-listen-0:kept-listen-1", GATES);
  for (int i = 0; i < GATES; i++)
    if (stored[i] > 4)
      close(stored[i]);
  service_open(&next);
  snprintf(address, sizeof(address), "%s:%u", other_address ? "127.0.0.2" : "127.0.0.1", other_address ? 0 : port);
  assert_int_equal(0, listeners_open(&next, "listen", address, GATES, fds, host, &again, &err));
  if (other_address) {
    heard(text, sizeof(text));
    assert_string_equal("FDSTOREREMOVE=1\nFDNAME=kept-listen-0", text);
    assert_int_not_equal(port, again);
  } else {
    assert_int_equal(port, again);
    for (int i = 0; i < GATES && accepted < 0; i++)
      accepted = accept(fds[i], NULL, NULL);
    assert_true(accepted >= 0);
    heard(text, sizeof(text));
    assert_string_equal("", text); /* they are kept already */
  }
  close(client);
}

static void same_address(void)
{
  kept_sockets(false);
}

static void other_address(void)
{
  kept_sockets(true);
}

static void a_connection_made_between_two_servers_is_accepted_by_the_next(void **state)
{
  in_child(same_address);
}

static void kept_sockets_of_another_address_are_dropped(void **state)
{
  in_child(other_address);
}

static void of_a_unit(void)
{
  struct service_manager m;
  struct err err = ERR_NONE;
  char host[LISTEN_HOST_SIZE], text[256];
  uint16_t port;
  int fds[GATES], given[] = {listening("127.0.0.3", SOCK_STREAM), listening("127.0.0.4", SOCK_STREAM)};
  uint16_t theirs = port_of(given[0]);
  hand_over(given, "listen:strange", 2);
  service_open(&m);
  assert_int_equal(0, listeners_open(&m, "listen", "127.0.0.1:1", GATES, fds, host, &port, &err));
  assert_string_equal("127.0.0.3", host);
  assert_int_equal(theirs, port);
  assert_int_equal(fds[0], fds[1]);
  assert_true(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
  assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
  service_close_rest(&m);
  heard(text, sizeof(text));
  assert_string_equal("FDSTOREREMOVE=1\nFDNAME=strange", text);
  assert_int_equal(-1, fcntl(4, F_GETFD));
}

static void sockets_of_a_unit_beat_the_setting_and_gates_share_them(void **state)
{
  in_child(of_a_unit);
}

static void no_listener(void)
{
  struct service_manager m;
  struct err err = ERR_NONE;
  char host[LISTEN_HOST_SIZE];
  uint16_t port;
  int fds[GATES], given = listening("127.0.0.1", SOCK_DGRAM);
  hand_over(&given, "listen", 1);
  service_open(&m);
  assert_int_equal(-EINVAL, listeners_open(&m, "listen", "127.0.0.1:0", GATES, fds, host, &port, &err));
  assert_non_null(strstr(err.msg, "ListenStream"));
}

static void a_given_socket_that_does_not_listen_is_refused(void **state)
{
  in_child(no_listener);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(without_a_service_manager_sockets_are_opened, set_up, tear_down),
      cmocka_unit_test_setup_teardown(readiness_and_life_are_told_and_the_variables_go, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_connection_made_between_two_servers_is_accepted_by_the_next, set_up, tear_down),
      cmocka_unit_test_setup_teardown(kept_sockets_of_another_address_are_dropped, set_up, tear_down),
      cmocka_unit_test_setup_teardown(sockets_of_a_unit_beat_the_setting_and_gates_share_them, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_given_socket_that_does_not_listen_is_refused, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
