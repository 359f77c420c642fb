/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_agent.c - stands in for a box's agent on a server that a test starts with a runtime of its own, and lies in
 * every message an agent has: the answer to the boot packet, the words of a build, HTTP answers, the log ring. How it
 * lies is said by a word "hostile:MODE" somewhere in the boot packet (a variable of the sandbox or of the template);
 * without one it is the real agent, which lies beside it as agent.real. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT   3
#define ORDERS 9 /* src/wire/boot_packet.h: BOOT_BUILD */

static char packet[1 << 20], noise[256 << 10];
static char mode[64];

static ssize_t take_packet(int flags)
{
  return recv(BOOT, packet, sizeof(packet), flags);
}

static int is_mode(const char *name)
{
  return strcmp(mode, name) == 0;
}

static void read_mode(ssize_t n)
{
  const char *at = n > 0 ? memmem(packet, (size_t)n, "hostile:", 8) : NULL;
  size_t k = 0;
  for (at = at ? at + 8 : ""; k < sizeof(mode) - 1 && ((*at >= 'a' && *at <= 'z') || *at == '-'); at++)
    mode[k++] = *at;
}

static void say(const void *bytes, size_t n)
{
  while (send(BOOT, bytes, n, MSG_NOSIGNAL) < 0 && errno == EINTR)
    ;
}

static void say_with_descriptors(const void *bytes, size_t n, size_t count)
{
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(253 * sizeof(int))];
  } control = {0};
  struct iovec part = {(void *)bytes, n};
  struct msghdr m = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(count * sizeof(int))};
  control.head.cmsg_level = SOL_SOCKET;
  control.head.cmsg_type = SCM_RIGHTS;
  control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
  for (size_t i = 0; i < count; i++)
    memcpy(CMSG_DATA(&control.head) + i * sizeof(int), &(int){BOOT}, sizeof(int));
  if (sendmsg(BOOT, &m, MSG_NOSIGNAL) < 0 && errno == EPERM)
    say("R", 1); /* this kernel refuses descriptors to the sender: an ordinary word instead */
}

static _Noreturn void rest(void)
{
  for (;;)
    pause();
}

/* ---- the log ring ---- */

static void forge_ring(void)
{
  struct {
    char magic[8];
    uint64_t size, written;
    char rest[40];
  } head = {"CLOCHLOG", (uint64_t)64 << 20, (uint64_t)1 << 63, ""};
  static const char line[] =
      "{\"t\":9223372036854775807,\"l\":\"error\",\"m\":\"\\u0000\\ud800 forged\",\"logger\":1}\n";
  int fd = open("/dev/shm/.cloche-log", O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || write(fd, &head, sizeof(head)) < 0)
    return;
  for (int i = 0; i < 20000; i++)
    if (write(fd, line, sizeof(line) - 1) < 0)
      break;
  if (ftruncate(fd, (off_t)64 + ((off_t)64 << 20)) == 0 && is_mode("ring-shrinks"))
    for (int i = 0;; i++)
      if (ftruncate(fd, i % 2 ? 64 : 1 << 20) < 0)
        break;
  close(fd);
}

static void forge_ring_by_name(void)
{
  if (is_mode("ring-link") && symlink("/etc/passwd", "/dev/shm/.cloche-log"))
    return;
  if (is_mode("ring-fifo"))
    mkfifo("/dev/shm/.cloche-log", 0666);
}

/* ---- HTTP ---- */

static void drip(int c, const char *text, int times)
{
  for (int i = 0; i < times && send(c, text, strlen(text), MSG_NOSIGNAL) > 0; i++)
    ;
}

static void lie(int c)
{
  if (is_mode("http-status"))
    drip(c, "HTTP/1.1 99999 What\r\n\r\n", 1);
  else if (is_mode("http-noise"))
    send(c, noise, sizeof(noise), MSG_NOSIGNAL);
  else if (is_mode("http-head"))
    drip(c, "HTTP/1.1 200 OK\r\n", 1),
        drip(c, "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n", 200000);
  else if (is_mode("http-lengths"))
    drip(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello, and more", 1);
  else if (is_mode("http-cut"))
    drip(c, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nshort", 1);
  else if (is_mode("http-chunks"))
    drip(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 1);
  else if (is_mode("http-continue"))
    drip(c, "HTTP/1.1 100 Continue\r\n\r\n", 1000000);
  else if (is_mode("http-split"))
    drip(c,
         "HTTP/1.1 200 OK\r\nX-A: b\rSet-Cookie: c\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
         "6\r\n\r\nforged",
         1);
}

static _Noreturn void serve(void)
{
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(49983), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  if (bind(s, (struct sockaddr *)&at, sizeof(at)) || listen(s, 64))
    say("Fno port", 8);
  say("R", 1);
  close(BOOT);
  for (int c; (c = accept(s, NULL, NULL)) >= 0 || errno == EINTR;)
    if (c >= 0 && fork() == 0) {
      struct timeval limit = {20, 0};
      setsockopt(c, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
      if (recv(c, packet, sizeof(packet), 0) > 0)
        lie(c);
      _exit(0);
    } else if (c >= 0) {
      close(c);
    }
  rest();
}

/* ---- a build ---- */

struct word {
  uint32_t number, what;
  int32_t status;
};

static void tell(uint32_t number, uint32_t what, int32_t status, size_t n)
{
  static char bytes[sizeof(struct word) + (64 << 10)];
  struct word w = {number, what, status};
  memcpy(bytes, &w, sizeof(w));
  memcpy(bytes + sizeof(w), noise, n);
  say(bytes, sizeof(w) + n);
}

/* Orders are numbered from one. */
static _Noreturn void build(void)
{
  say("R", 1);
  for (uint32_t number = 1; take_packet(0) > 0; number++) {
    if (is_mode("build-half"))
      say("xy", 2);
    else if (is_mode("build-unknown"))
      tell(number, 77, 0, 10);
    else if (is_mode("build-refused"))
      tell(number, 4, 0, 60000);
    else if (is_mode("build-status"))
      tell(number, 3, -2147483647 - 1, 0);
    else if (is_mode("build-others"))
      tell(number + 1, 3, 0, 0), tell(0, 3, 0, 0), tell(number, 3, 9, 0);
    else if (is_mode("build-descriptors"))
      say_with_descriptors("Rxxxxxxxxxxxxxxxxxxxx", 20, 200), tell(number, 3, 9, 0);
    else if (is_mode("build-flood")) {
      for (int i = 0; i < 300; i++)
        tell(number, 1 + i % 2, 0, 32 << 10);
      tell(number, 3, 9, 0);
    } else if (is_mode("build-dies"))
      _exit(0);
  }
  rest();
}

/* ---- the answer to the boot packet ---- */

static _Noreturn void answer(void)
{
  take_packet(0);
  if (is_mode("boot-noise"))
    say(noise + 1, 300);
  else if (is_mode("boot-empty"))
    say("", 0);
  else if (is_mode("boot-forges"))
    say("Fbroken\n2026-01-01T00:00:00 error cloche: FORGED line\r\033[31m\377\376", 66);
  else if (is_mode("boot-long"))
    noise[0] = 'F', say(noise, 150 << 10);
  else if (is_mode("boot-dies"))
    _exit(7);
  else if (is_mode("boot-descriptors"))
    say_with_descriptors("R", 1, 253);
  else if (is_mode("boot-flood"))
    for (int i = 0; i < 100000 && send(BOOT, noise, 1000, MSG_NOSIGNAL | MSG_DONTWAIT) > 0; i++)
      ;
  rest();
}

static int builds(ssize_t n)
{
  struct {
    uint32_t tag, len;
  } field;
  for (ssize_t at = 0; at + (ssize_t)sizeof(field) <= n; at += (ssize_t)sizeof(field) + field.len) {
    memcpy(&field, packet + at, sizeof(field));
    if (field.tag == ORDERS)
      return 1;
  }
  return 0;
}

int main(int argc, char **argv)
{
  (void)argc;
  ssize_t n = take_packet(MSG_PEEK);
  read_mode(n);
  if (!mode[0] || (builds(n) && strncmp(mode, "build-", 6) != 0)) {
    execv("/usr/lib/cloche/agent.real", argv);
    return 127;
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
  srand(1);
  for (size_t i = 0; i < sizeof(noise); i++)
    noise[i] = (char)(rand() >> 7);
  if (strncmp(mode, "build-", 6) == 0) {
    take_packet(0);
    build();
  }
  if (strncmp(mode, "http-", 5) == 0) {
    take_packet(0);
    serve();
  }
  if (strncmp(mode, "ring", 4) == 0) {
    take_packet(0);
    say("R", 1);
    close(BOOT); /* the launch is over at its end */
    forge_ring_by_name();
    if (!is_mode("ring-link") && !is_mode("ring-fifo"))
      forge_ring();
    rest();
  }
  answer();
}
