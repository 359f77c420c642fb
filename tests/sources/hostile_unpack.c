/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_unpack.c - an unpacker that an image took over, or brought along. Static; the first process of its box.
 *
 * The order's limit in MiB says what it does: 1 fills the disk, 2 asks and never reads, 3 sends a socket that takes
 * long to close, 4 says nothing that is a message; otherwise it says that it was run. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unpack/unpack.h"

#define LINE    3
#define FILL_MB 400

static void say(const char *text)
{
  send(LINE, text, strlen(text), MSG_NOSIGNAL);
}

static void fill(void)
{
  static char piece[1 << 20];
  char text[100];
  int n = 0, fd = open("/fill", O_WRONLY | O_CREAT, 0600);
  memset(piece, 1, sizeof(piece));
  while (n < FILL_MB && write(fd, piece, sizeof(piece)) == (ssize_t)sizeof(piece))
    n++;
  snprintf(text, sizeof(text), "Ewrote %d MiB", n);
  say(text);
}

static void ask_for_ever(void)
{
  for (;;)
    if (send(LINE, "G" UNPACK_INDEX, 6, MSG_NOSIGNAL) < 0)
      return;
}

static void send_socket(void)
{
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
  } control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct iovec part = {"Lx", 2};
  struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 60}, sizeof(struct linger));
  memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
  if (sendmsg(LINE, &m, MSG_NOSIGNAL) < 0)
    say(errno == EPERM ? "Ethe kernel refuses it" : "Eanother error");
  else
    say("Eit was sent");
}

int main(void)
{
  struct unpack_request o;
  if (recv(LINE, &o, sizeof(o), 0) != (ssize_t)sizeof(o))
    return 1;
  switch (o.bytes >> 20) {
  case 1:
    fill();
    break;
  case 2:
    ask_for_ever();
    break;
  case 3:
    send_socket();
    break;
  case 4:
    say("G../../../etc/shadow");
    break;
  default:
    say("Ethe planted program was run");
  }
  pause();
  return 0;
}
