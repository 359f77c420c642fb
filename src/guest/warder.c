/* SPDX-License-Identifier: Apache-2.0 */
/* warder.c - cloche-warder: pid 1 of a jail that has QEMU in it; see guest.h.
 *
 *   warder QEMU ARGUMENT...
 *
 * It has no more rights than QEMU beside it and is in nobody's way: it starts QEMU with the guest's port as descriptor
 * GUEST_PORT_FD and all other descriptors as they came, carries boot packets, and ends when QEMU does, and the box with
 * it. What QEMU and the guest print is kept, as much as fits a message: it is the reason that the warden gets when the
 * guest does not come up. A warden that goes away before the agent has answered takes the box along. */
#include "wire/guest_frame.h"
#include "wire/boot_packet.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define BOOT_FD   3
#define SAID_MAX  400 /* of the end of what QEMU and the guest have printed */
#define NOTE_ROOM 600
#define PANIC     "Kernel panic" /* what Linux begins its last words with */

extern char **environ;

struct warder {
  int boot, port, output; /* -1: closed */
  pid_t qemu;
  bool asked;    /* the guest has its configuration and takes packets */
  bool answered; /* the agent said something: what follows is no longer this program's to explain */
  bool panicked; /* the guest's console said so */
  char *packet;  /* BOOT_MAX bytes */
  struct guest_reader reader;
  char said[SAID_MAX];
  size_t said_n;
};

static _Noreturn void leave_with(struct warder *w, int status, const char *why)
{
  char text[NOTE_ROOM];
  int n = snprintf(text, sizeof(text), "%c%s%s%.*s", BOOT_FAILED, why, w->said_n ? ": " : "", (int)w->said_n, w->said);
  if (w->boot >= 0 && !w->answered)
    send(w->boot, text, MIN((size_t)n, sizeof(text) - 1), MSG_NOSIGNAL | MSG_DONTWAIT);
  _exit(status); /* the kernel ends QEMU with the pid namespace */
}

static _Noreturn void leave(struct warder *w, const char *why)
{
  leave_with(w, 1, why);
}

/* ---- QEMU ---- */

static void run_qemu(int port, int output, char **argv)
{
  static char modules[] = "QEMU_MODULE_DIR=/lib/qemu";
  char *env[] = {modules, NULL};
  if (dup2(output, 1) < 0 || dup2(output, 2) < 0 || dup2(port, GUEST_PORT_FD) < 0)
    _exit(126);
  close(BOOT_FD);
  execve(argv[0], argv, env);
  dprintf(2, "%s: %s", argv[0], strerror(errno));
  _exit(127);
}

static void start_qemu(struct warder *w, char **argv)
{
  int port[2], output[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, port) || pipe2(output, O_CLOEXEC))
    leave(w, "making the guest's port");
  w->qemu = fork();
  if (w->qemu < 0)
    leave(w, "starting QEMU");
  if (w->qemu == 0)
    run_qemu(port[1], output[1], argv);
  close(port[1]);
  close(output[1]);
  w->port = port[0];
  w->output = output[0];
}

/* What QEMU was given is QEMU's. */
static void close_given(void)
{
  for (int fd = BOOT_FD + 1; fd < 1024; fd++)
    if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC)) /* ours are close-on-exec; what is not open fails to close */
      close(fd);
}

/* ---- what it prints ---- */

/* The tail, without line ends and control characters: it becomes one line of a message. */
static void keep_said(struct warder *w, const char *text, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    char c = text[i];
    if (c == '\r' || (unsigned char)c >= 127 || (c < ' ' && c != '\n'))
      continue;
    if (w->said_n == sizeof(w->said)) {
      memmove(w->said, w->said + SAID_MAX / 4, SAID_MAX - SAID_MAX / 4);
      w->said_n -= SAID_MAX / 4;
    }
    w->said[w->said_n++] = c == '\n' ? ' ' : c;
    w->panicked = w->panicked || (c == 'c' && str_ends(str_make(w->said, w->said_n), STR(PANIC)));
  }
}

static void take_output(struct warder *w)
{
  char text[4096];
  ssize_t n = read(w->output, text, sizeof(text));
  if (n > 0)
    keep_said(w, text, (size_t)n);
  else if (n == 0 || errno != EINTR)
    close(steal_fd(&w->output));
}

/* ---- the relay ---- */

static void send_config(struct warder *w)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  for (char **v = environ; *v; v++)
    buf_add(&b, *v, strlen(*v) + 1);
  buf_addf(&b, "GUEST_TIME=%lld", (long long)clock_wall_us());
  buf_add(&b, "", 1);
  if (buf_failed(&b) || guest_write(w->port, GUEST_CONFIG, b.p, b.n))
    leave(w, "sending the guest its configuration");
}

static void take_frame(struct warder *w, const struct guest_frame *head, struct str body)
{
  switch ((enum guest_word)head->word) {
  case GUEST_ASKS:
    if (!w->asked)
      send_config(w);
    w->asked = true;
    return;
  case GUEST_ANSWER:
    w->answered = true;
    if (w->boot >= 0 && send(w->boot, body.p, body.n, MSG_NOSIGNAL) < 0)
      leave(w, "");
    return;
  case GUEST_END:
    if (!w->answered)
      leave(w, "the agent ended before it answered");
    if (w->boot >= 0)
      close(steal_fd(&w->boot));
    close(steal_fd(&w->port)); /* nothing more is to be said */
    return;
  default:
    leave(w, "the guest sent an unknown word");
  }
}

static void take_port(struct warder *w)
{
  struct guest_frame head;
  struct str body;
  int r = 1;
  ssize_t n = guest_read(&w->reader, w->port);
  if (n <= 0) { /* QEMU is about to end, and says why */
    close(steal_fd(&w->port));
    return;
  }
  while (w->port >= 0 && (r = guest_frame_next(&w->reader, &head, &body)) > 0) {
    take_frame(w, &head, body);
    guest_frame_done(&w->reader, &head);
  }
  if (r < 0)
    leave(w, "the guest sent a malformed frame");
}

static void take_packet(struct warder *w)
{
  ssize_t n = recv(w->boot, w->packet, BOOT_MAX, 0);
  if (n < 0 && errno == EINTR)
    return;
  if (n <= 0 && !w->answered)
    leave(w, "");
  if (n <= 0)
    close(steal_fd(&w->boot));
  else if (w->port >= 0 && guest_write(w->port, GUEST_BOOT, w->packet, (size_t)n))
    leave(w, "handing a boot packet to the guest");
}

static void qemu_over(struct warder *w)
{
  char why[64] = "the guest ended";
  int status, end = GUEST_ENDED;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
    if (pid == w->qemu) {
      while (w->output >= 0 && poll(&(struct pollfd){.fd = w->output, .events = POLLIN}, 1, 0) > 0)
        take_output(w);
      if (WIFSIGNALED(status)) {
        end = GUEST_QEMU_KILLED;
        snprintf(why, sizeof(why), "QEMU was killed by signal %d", WTERMSIG(status));
      } else if (WEXITSTATUS(status)) {
        end = GUEST_QEMU_FAILED;
        snprintf(why, sizeof(why), "QEMU exited with status %d", WEXITSTATUS(status));
      } else if (w->panicked)
        end = GUEST_PANICKED;
      leave_with(w, end, why);
    }
}

static void child_ended(int sig)
{
}

static void relay(struct warder *w, const sigset_t *before)
{
  for (;;) {
    struct pollfd p[] = {{.fd = w->boot, .events = w->asked ? POLLIN : 0},
                         {.fd = w->port, .events = POLLIN},
                         {.fd = w->output, .events = POLLIN}};
    qemu_over(w);
    if (ppoll(p, ARRAY_LEN(p), NULL, before) < 0)
      continue; /* SIGCHLD */
    if (p[2].revents)
      take_output(w);
    if (p[1].revents)
      take_port(w);
    if (p[0].revents && !w->asked)
      leave(w, ""); /* the warden is gone */
    if (p[0].revents && w->boot >= 0)
      take_packet(w);
  }
}

int main(int argc, char **argv)
{
  static struct warder w = {.boot = BOOT_FD, .port = -1, .output = -1};
  sigset_t child, before;
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  fcntl(BOOT_FD, F_SETFD, FD_CLOEXEC);
  if (argc < 2)
    leave(&w, "warder has no program to start");
  w.packet = mmap(NULL, BOOT_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  w.reader.max = GUEST_ANSWER_MAX;
  buf_init(&w.reader.bytes, GUEST_ANSWER_MAX + sizeof(struct guest_frame));
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &before);
  sigaction(SIGCHLD, &(struct sigaction){.sa_handler = child_ended}, NULL);
  start_qemu(&w, argv + 1);
  close_given();
  relay(&w, &before);
}
