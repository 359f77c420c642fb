/* SPDX-License-Identifier: Apache-2.0 */
/* warden_boxsock.c - descriptors from a box: refused to the sender where the kernel can, and never waited for anywhere.
 */
#include "unit.h"

#include "wire/box_socket.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINGER_S 20
#define SOON_US  1000000

/* A TCP connection whose close waits: its peer takes nothing, and it lingers. */
struct trap {
  int listener, client, peer;
};

static struct trap trap_make(void)
{
  struct trap t;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof(at);
  static char bytes[65536];
  t.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(t.listener, (struct sockaddr *)&at, sizeof(at)) | listen(t.listener, 1), 0);
  assert_int_equal(getsockname(t.listener, (struct sockaddr *)&at, &len), 0);
  t.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(t.client, (struct sockaddr *)&at, sizeof(at)), 0);
  t.peer = accept(t.listener, NULL, NULL);
  while (send(t.client, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
    ;
  assert_int_equal(setsockopt(t.client, SOL_SOCKET, SO_LINGER, &(struct linger){1, LINGER_S}, sizeof(struct linger)),
                   0);
  return t;
}

static void trap_end(struct trap *t)
{
  close(t->peer); /* with unread bytes: a reset, which ends every wait */
  close(t->listener);
}

static ssize_t give(int sock, struct trap *t)
{
  ssize_t sent = fd_send(sock, "x", 1, &t->client, 1, MSG_DONTWAIT);
  if (sent >= 0)
    close(t->client);
  return sent;
}

static void a_guarded_socket_takes_no_descriptor(void **state)
{
  int pair[2];
  char byte;
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  box_socket_guard(pair[0]);
  struct trap t = trap_make();
  ssize_t sent = give(pair[1], &t);
  if (sent < 0) { /* the kernel refuses it to the sender, which still has it */
    assert_int_equal(sent, -EPERM);
    setsockopt(t.client, SOL_SOCKET, SO_LINGER, &(struct linger){0}, sizeof(struct linger));
    close(t.client);
  } else {
    assert_int_equal(box_socket_recv(pair[0], &byte, 1), -EPERM);
  }
  assert_int_equal(send(pair[1], "y", 1, 0), 1); /* words pass */
  assert_int_equal(box_socket_recv(pair[0], &byte, 1), 1);
  assert_int_equal(byte, 'y');
  assert_int_equal(box_socket_recv(pair[0], &byte, 1), -EAGAIN);
  close(pair[1]);
  assert_int_equal(box_socket_recv(pair[0], &byte, 1), 0);
  box_socket_close(pair[0]);
  trap_end(&t);
}

/* As on a kernel that can't refuse them. */
static void what_came_is_closed_by_somebody_else(void **state)
{
  int pair[2];
  char byte;
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  struct trap t = trap_make();
  assert_int_equal(give(pair[1], &t), 1);
  int64_t began = clock_mono_us();
  assert_int_equal(box_socket_recv(pair[0], &byte, 1), -EPERM);
  assert_true(clock_mono_us() - began < SOON_US);
  close(pair[1]);
  box_socket_close(pair[0]);
  trap_end(&t);
}

/* This process on a kernel before 6.16: the option is not known. */
static void forget_passrights(void)
{
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 83, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {ARRAY_LEN(code), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    _exit(90);
}

/* Not asserted here: a failure's jump would leave the child in the parent's tests. */
static int older_kernel(void)
{
  int pair[2];
  char byte;
  forget_passrights();
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
    return 1;
  box_socket_guard(pair[0]);
  struct trap t[2] = {trap_make(), trap_make()};
  if (give(pair[1], &t[0]) != 1 || give(pair[1], &t[1]) != 1) /* nothing refuses them */
    return 2;
  int64_t began = clock_mono_us();
  if (box_socket_recv(pair[0], &byte, 1) != -EPERM)
    return 3;
  box_socket_close(pair[0]); /* with the second one unread */
  return clock_mono_us() - began < SOON_US ? 0 : 4;
}

static void a_kernel_that_can_not_refuse_them_stops_nobody(void **state)
{
  int status;
  pid_t pid = fork();
  if (pid == 0)
    _exit(older_kernel());
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
}

/* The kernel closes what is unread in the thread that closes the socket: more of them than there are threads to close.
 */
static void closing_never_waits_for_what_is_unread(void **state)
{
  struct trap t[12];
  int64_t took = 0;
  for (size_t i = 0; i < ARRAY_LEN(t); i++) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    t[i] = trap_make();
    assert_int_equal(give(pair[1], &t[i]), 1);
    close(pair[1]);
    int64_t began = clock_mono_us();
    box_socket_close(pair[0]);
    took += clock_mono_us() - began;
  }
  assert_true(took < SOON_US);
  for (size_t i = 0; i < ARRAY_LEN(t); i++)
    trap_end(&t[i]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_guarded_socket_takes_no_descriptor),
      cmocka_unit_test(what_came_is_closed_by_somebody_else),
      cmocka_unit_test(a_kernel_that_can_not_refuse_them_stops_nobody),
      cmocka_unit_test(closing_never_waits_for_what_is_unread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
