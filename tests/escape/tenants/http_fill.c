/* SPDX-License-Identifier: Apache-2.0 */
/* http_fill PORT - a server that answers every request with as many bytes as the client takes, and then waits with
 * more. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 4096

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n";
static struct pollfd all[MOST];
static char block[65536];
static int n = 1;

static void greet(void)
{
  int fd = accept4(all[0].fd, NULL, NULL, SOCK_NONBLOCK);
  if (fd < 0)
    return;
  if (n == MOST) {
    close(fd);
    return;
  }
  all[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* True while the connection is of use. */
static int serve(struct pollfd *p)
{
  if (p->revents & POLLIN) {
    ssize_t r = recv(p->fd, block, sizeof(block), 0);
    if (r <= 0)
      return 0;
    if (send(p->fd, head, sizeof(head) - 1, MSG_NOSIGNAL) < 0)
      return 0;
    p->events = POLLOUT;
  }
  if (p->revents & (POLLERR | POLLHUP))
    return 0;
  if (p->revents & POLLOUT)
    return send(p->fd, block, sizeof(block), MSG_NOSIGNAL) > 0 || errno == EAGAIN;
  return 1;
}

int main(int argc, char **argv)
{
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)(argc > 1 ? atoi(argv[1]) : 0))};
  struct rlimit files = {MOST + 16, MOST + 16};
  int one = 1;
  setrlimit(RLIMIT_NOFILE, &files);
  all[0] = (struct pollfd){.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN};
  setsockopt(all[0].fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (bind(all[0].fd, (struct sockaddr *)&a, sizeof(a)) || listen(all[0].fd, MOST)) {
    perror("http_fill");
    return 1;
  }
  while (poll(all, (nfds_t)n, -1) > 0) {
    if (all[0].revents)
      greet();
    for (int i = 1; i < n; i++)
      if (all[i].revents && !serve(&all[i])) {
        close(all[i].fd);
        all[i--] = all[--n];
      }
  }
  return 0;
}
