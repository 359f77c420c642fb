/* SPDX-License-Identifier: Apache-2.0 */
/* uid_limits take KIND USERS - uses up what the kernel counts by user or for all, as so many users of the box, and
 * holds it. uid_limits one KIND - takes one and gives it back: exit status 0 when there was one.
 *
 * KIND: queue (POSIX message queues), timer (pending signals), lock (locked shared memory), aio, fanotify, inotify,
 * epoll, pipe. "taken N" goes to stdout when everything is held. */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <mqueue.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST      200000 /* of one user: what is not bounded by then is bounded by memory */
#define AIO_MOST  40     /* contexts of 8192 requests */
#define LOCK_STEP (1 << 20)

static long serial;

static int take_queue(void)
{
  char name[64];
  struct mq_attr attr = {.mq_maxmsg = 10, .mq_msgsize = 8192};
  snprintf(name, sizeof(name), "/taken-%d-%ld", getpid(), serial++);
  return mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr) < 0 ? -1 : 0;
}

static int take_timer(void)
{
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  timer_t made;
  return timer_create(CLOCK_MONOTONIC, &event, &made);
}

static int take_lock(void)
{
  int id = shmget(IPC_PRIVATE, LOCK_STEP, IPC_CREAT | 0600);
  if (id < 0 || shmctl(id, SHM_LOCK, NULL)) {
    int code = errno;
    if (id >= 0)
      shmctl(id, IPC_RMID, NULL);
    errno = code;
    return -1;
  }
  return 0;
}

static int take_aio(void)
{
  aio_context_t made = 0;
  if (serial++ >= AIO_MOST) {
    errno = E2BIG;
    return -1;
  }
  return (int)syscall(SYS_io_setup, 8192, &made);
}

static int take_fanotify(void)
{
  return fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY) < 0 ? -1 : 0;
}

static int take_inotify(void)
{
  return inotify_init1(0) < 0 ? -1 : 0;
}

static int take_epoll(void)
{
  static int set = -1;
  struct epoll_event event = {.events = EPOLLIN};
  if (set < 0)
    set = epoll_create1(0);
  int ends[2];
  return pipe(ends) || epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) ? -1 : 0;
}

static int take_pipe(void)
{
  int ends[2];
  return pipe(ends) || fcntl(ends[0], F_SETPIPE_SZ, 1 << 20) < 0 ? -1 : 0;
}

static const struct {
  const char *name;
  int (*take)(void);
} kinds[] = {{"queue", take_queue},       {"timer", take_timer},     {"lock", take_lock},   {"aio", take_aio},
             {"fanotify", take_fanotify}, {"inotify", take_inotify}, {"epoll", take_epoll}, {"pipe", take_pipe}};

static void hold(int (*take)(void), uid_t user, int tell)
{
  long n = 0;
  if (setresuid(user, user, user))
    _exit(1);
  while (n < MOST && take() == 0)
    n++;
  fprintf(stderr, "user %u: %ld, then %s\n", (unsigned)user, n, n < MOST ? strerror(errno) : "enough");
  if (write(tell, &n, sizeof(n)) != sizeof(n))
    _exit(1);
  for (;;)
    pause();
}

static int take_all(int (*take)(void), int users)
{
  long sum = 0, n;
  for (int i = 0; i < users; i++) {
    int ends[2];
    if (pipe(ends))
      return 1;
    if (fork() == 0)
      hold(take, i ? 20000 + (uid_t)i : 0, ends[1]);
    close(ends[1]);
    if (read(ends[0], &n, sizeof(n)) == sizeof(n))
      sum += n;
  }
  printf("taken %ld\n", sum);
  fflush(stdout);
  for (;;)
    pause();
}

int main(int argc, char **argv)
{
  for (size_t i = 0; argc >= 3 && i < sizeof(kinds) / sizeof(*kinds); i++) {
    if (strcmp(kinds[i].name, argv[2]))
      continue;
    if (!strcmp(argv[1], "take"))
      return take_all(kinds[i].take, argc > 3 ? atoi(argv[3]) : 1);
    if (kinds[i].take() == 0)
      return 0;
    fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
    return 1;
  }
  return 64;
}
