/* SPDX-License-Identifier: Apache-2.0 */
/* linger.c SECONDS - sends the warden TCP sockets whose close blocks, through every name that it listens on in this
 * box.
 *
 * The socket has unsent bytes for a peer that takes none, and SO_LINGER: whoever closes it last waits SECONDS. It goes
 * as a datagram (the first protocol) and over connections, written at once and left unread in the queue. Says how many
 * messages were taken and how many refused, and stays behind for as long as the sockets linger. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TRIES 4

static int sent, refused;

static int lingering(int seconds)
{
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof(at);
  static char bytes[65536];
  int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr *)&at, &len) || connect(fd, (struct sockaddr *)&at, sizeof(at)))
    exit(2);
  while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
    ;
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, seconds}, sizeof(struct linger));
  return fd; /* the listener stays open, and takes nothing */
}

/* Only the receiver has it then. */
static void give(int sock, int fd)
{
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec part = {"python", 6};
  struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
  memcpy(CMSG_DATA(c), &fd, sizeof(fd));
  if (sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    refused++;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){0},
               sizeof(struct linger)); /* or it is this program that waits */
  } else {
    sent++;
  }
  close(fd);
}

static void ring(int type, const char *name, int seconds)
{
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  int sock = socket(AF_UNIX, type | SOCK_NONBLOCK, 0), fd = lingering(seconds); /* before: a stranger is hung up on */
  strcpy(at.sun_path + 1, name);
  if (!connect(sock, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)))) {
    give(sock, fd);
    return;
  }
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){0}, sizeof(struct linger));
  close(fd);
}

int main(int argc, char **argv)
{
  int seconds = argc > 1 ? atoi(argv[1]) : 15;
  signal(SIGPIPE, SIG_IGN);
  if (fork() == 0) {
    setsid();
    for (int fd = 0; fd < 3; fd++) /* nobody waits for its end */
      close(fd);
    open("/dev/null", O_RDWR);
    for (int i = 0; i < TRIES; i++) {
      ring(SOCK_DGRAM, "cloche-nursery", seconds);
      ring(SOCK_STREAM, "cloche-nursery-python", seconds);
    }
    FILE *f = fopen("/tmp/linger.out", "w");
    fprintf(f, "%d sent, %d refused\n", sent, refused);
    fclose(f);
    sleep((unsigned)seconds + 5);
    _exit(0);
  }
  return 0;
}
