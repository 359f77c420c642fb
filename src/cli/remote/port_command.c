/* SPDX-License-Identifier: Apache-2.0 */
/* port_command.c - `cloche port`: a port of a sandbox at a local address, for any protocol on TCP.
 *
 * Each connection is carried by a command in the sandbox whose standard input and output are the connection there, so
 * that it works with every server that can run commands and asks for nothing but the sandbox's own token. What a slow
 * local reader has not taken yet is kept, up to a bound. */
#include "cli/remote/commands.h"
#include "cli/remote/remote.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define LINKS_MOST 64
#define PIECE      65536
#define KEPT_MOST  ((size_t)32 << 20)
#define BACKLOG    64

/* Python where there is one, since it can close one direction; else bash. 7: nothing listens there. */
static const char relay[] =
    "if command -v python3 >/dev/null 2>&1; then exec python3 -Sc '\n"
    "import os, socket, sys, threading\n"
    "try:\n"
    "    s = socket.create_connection((\"localhost\", int(sys.argv[1])), 10)\n"
    "except OSError as e:\n"
    "    sys.exit(7)\n"
    "s.settimeout(None)\n"
    "def up():\n"
    "    while data := os.read(0, 65536):\n"
    "        s.sendall(data)\n"
    "    s.shutdown(socket.SHUT_WR)\n"
    "threading.Thread(target=up, daemon=True).start()\n"
    "while data := s.recv(65536):\n"
    "    while data:\n"
    "        data = data[os.write(1, data):]\n"
    "os._exit(0)' \"$CLOCHE_PORT\"; fi\n"
    "exec 3<>/dev/tcp/localhost/$CLOCHE_PORT || exit 7\n"
    "cat <&3 & reader=$!; { cat >&3; } & writer=$!; wait $reader; kill $writer 2>/dev/null; exit 0";

struct link {
  int fd; /* -1: free */
  struct cloche_process *process;
  struct cloche_command_result *result;
  struct cloche_op *start, *wait, *input;
  bool waiting, eof, lost; /* lost: the local side is gone or too slow */
  struct buf kept;         /* for the local side */
  char piece[PIECE];
};

struct port {
  struct remote remote;
  struct cloche_box *box;
  const struct args *args;
  int listener;
  char number[8];
  uint64_t served;
  struct link *links[LINKS_MOST];
};

/* ---- one connection ---- */

static void flush(struct link *l)
{
  while (l->kept.n && !l->lost) {
    ssize_t n = send(l->fd, l->kept.p, l->kept.n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n < 0)
      l->lost = true;
    else
      buf_drop(&l->kept, (size_t)n);
  }
}

static int on_output(const struct cloche_text *text, void *user)
{
  struct link *l = user;
  if (l->lost)
    return 0;
  if (buf_add(&l->kept, text->data, text->len)) {
    complain("a local reader is %zu MiB behind: its connection is closed", KEPT_MOST >> 20);
    l->lost = true;
  }
  flush(l);
  return 0;
}

static void link_free(struct link *l)
{
  cloche_op_free(l->start);
  cloche_op_free(l->wait);
  cloche_op_free(l->input);
  cloche_process_free(l->process);
  cloche_free(l->result);
  buf_free(&l->kept);
  close(l->fd);
  free(l);
}

static struct link *link_new(struct port *p, int fd)
{
  struct link *l = xcalloc(1, sizeof(*l));
  const struct cloche_pair envs[] = {{"CLOCHE_PORT", p->number}};
  *l = (struct link){.fd = fd, .kept = BUF_INIT(KEPT_MOST)};
  l->start = cloche_op_new(p->remote.client, NULL, NULL);
  l->wait = cloche_op_new(p->remote.client, NULL, NULL);
  l->input = cloche_op_new(p->remote.client, NULL, NULL);
  const struct cloche_command options = {.size = sizeof(options),
                                         .envs = envs,
                                         .env_count = ARRAY_LEN(envs),
                                         .stdin_open = true,
                                         .on_stdout = on_output,
                                         .user = l,
                                         .no_retain = true};
  if (!cloche_start(p->box, relay, &options, &l->process, CLOCHE_WITH(cloche_call, .op = l->start), &p->remote.error))
    return l;
  remote_failed(&p->remote, p->args->words[0]);
  link_free(l);
  return NULL;
}

/* From the local side into the sandbox, one piece at a time. */
static void take_input(struct link *l, struct cloche_box *box)
{
  const struct cloche_call call = {.size = sizeof(call), .op = l->input};
  uint32_t pid = cloche_process_pid(l->process);
  ssize_t n = recv(l->fd, l->piece, sizeof(l->piece), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  l->eof = n <= 0;
  l->lost |= n < 0;
  if (n > 0)
    cloche_stdin(box, pid, l->piece, (size_t)n, &call, NULL);
  else
    cloche_close_stdin(box, pid, &call, NULL);
}

/* True: it is over. */
static bool link_step(struct port *p, struct link *l)
{
  if (!cloche_op_done(l->start))
    return l->lost;
  const struct cloche_error *e = cloche_op_error(l->start);
  if (e->code) {
    complain("%s: %s", p->args->words[0], e->message ? e->message : cloche_code_name(e->code));
    return true;
  }
  if (!l->waiting) {
    l->waiting = true;
    if (cloche_wait(l->process, &l->result, CLOCHE_WITH(cloche_call, .op = l->wait, .timeout_ms = -1), NULL))
      return true;
  }
  flush(l);
  if (l->lost)
    return true;
  if (!cloche_op_done(l->wait) || l->kept.n)
    return false;
  if (l->result && l->result->exit_code == 7)
    complain("nothing listens on port %s of %s", p->number, cloche_box_id(p->box));
  return true;
}

/* Ends it from this side: nothing of it stays in the sandbox. */
static void link_cut(struct port *p, struct link *l)
{
  if (!cloche_op_wait(l->start, NULL) && l->process && !(l->waiting && cloche_op_done(l->wait)))
    cloche_signal(p->box, cloche_process_pid(l->process), SIGKILL, NULL, NULL, NULL);
  link_free(l);
}

/* ---- all of them ---- */

static void accept_one(struct port *p)
{
  size_t i = 0;
  int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0)
    return;
  while (i < LINKS_MOST && p->links[i])
    i++;
  if (i == LINKS_MOST) {
    complain("%d connections are open: one more is refused", LINKS_MOST);
    close(fd);
  } else if ((p->links[i] = link_new(p, fd))) {
    p->served++;
  }
}

static short wanted(const struct link *l)
{
  bool reads = cloche_op_done(l->start) && l->process && !l->eof && cloche_op_done(l->input);
  return (short)((reads ? POLLIN : 0) | (l->kept.n ? POLLOUT : 0));
}

/* True when a signal came that ends the command. */
static bool turn(struct port *p)
{
  struct signalfd_siginfo info;
  struct pollfd fds[LINKS_MOST + 3] = {{.fd = cloche_fd(p->remote.client), .events = POLLIN},
                                       {.fd = p->remote.signals, .events = POLLIN},
                                       {.fd = p->listener, .events = POLLIN}};
  for (size_t i = 0; i < LINKS_MOST; i++) {
    struct link *l = p->links[i];
    short events = l ? wanted(l) : 0;
    fds[i + 3] = (struct pollfd){.fd = events ? l->fd : -1, .events = events};
  }
  poll(fds, ARRAY_LEN(fds), cloche_timeout(p->remote.client));
  cloche_drive(p->remote.client);
  if (fds[1].revents && read(p->remote.signals, &info, sizeof(info)) == sizeof(info) && info.ssi_signo != SIGWINCH)
    return true;
  for (size_t i = 0; i < LINKS_MOST; i++) {
    struct link *l = p->links[i];
    if (l && fds[i + 3].revents & (POLLIN | POLLHUP | POLLERR) && wanted(l) & POLLIN)
      take_input(l, p->box);
    if (l && link_step(p, l)) {
      link_cut(p, l);
      p->links[i] = NULL;
    }
  }
  if (fds[2].revents)
    accept_one(p);
  return false;
}

/* ---- the command ---- */

static bool read_port(const char *text, uint64_t least, uint64_t *port)
{
  return !str_u64(str_of(text), port) && *port >= least && *port <= 65535;
}

static int listen_at(struct port *p, uint64_t local)
{
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)local)};
  const char *host = p->args->name ? p->args->name : "127.0.0.1";
  socklen_t size = sizeof(at);
  int one = 1;
  if (inet_pton(AF_INET, host, &at.sin_addr) != 1)
    return complain("--address must be an IPv4 address of this machine, not '%s'", host), EXIT_USAGE;
  p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (p->listener >= 0)
    setsockopt(p->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&at, sizeof(at)) || listen(p->listener, BACKLOG) ||
      getsockname(p->listener, (struct sockaddr *)&at, &size))
    return complain("%s:%llu: %s", host, (unsigned long long)local, strerror(errno));
  if (p->args->json)
    printf("{\"address\":\"%s\",\"port\":%u,\"sandboxID\":\"%s\",\"sandboxPort\":%s}\n", host, ntohs(at.sin_port),
           cloche_box_id(p->box), p->number);
  else
    printf("http://%s:%u is port %s of %s; Ctrl-C ends it\n", host, ntohs(at.sin_port), p->number,
           cloche_box_id(p->box));
  fflush(stdout);
  return 0;
}

static int port_run(struct args *args)
{
  struct port p = {.args = args, .listener = -1};
  uint64_t local, inside;
  cleanup_free char *word = xstrdup(args->words[1]);
  char *colon = strchr(word, ':');
  const char *second = colon ? colon + 1 : word;
  if (colon)
    *colon = 0;
  if (!read_port(second, 1, &inside) || !read_port(word, 0, &local))
    return complain("'%s' must be PORT or LOCAL:PORT, each from 1 to 65535 (LOCAL 0: a free one)", args->words[1]),
           EXIT_USAGE;
  snprintf(p.number, sizeof(p.number), "%llu", (unsigned long long)inside);
  int status = remote_open(args, &p.remote);
  if (status)
    return status;
  if (!(status = remote_box(&p.remote, args->words[0], &p.box))) {
    status = remote_signals(&p.remote);
    status = status ? status : listen_at(&p, local);
    while (!status && !turn(&p))
      ;
    for (size_t i = 0; i < LINKS_MOST; i++)
      if (p.links[i])
        link_cut(&p, p.links[i]);
    if (p.listener >= 0)
      close(p.listener);
    cloche_box_free(p.box);
  }
  remote_close(&p.remote);
  return status;
}

static const struct option_spec port_options[] = {
    {"address", 0, "IP", "where to listen [127.0.0.1]; others on that network can then use it", OPTION_TEXT,
     offsetof(struct args, name), 0, 0},
};

const struct command_spec port_spec = {
    .name = "port",
    .summary = "a port of a sandbox at a local address",
    .usage = "ID [LOCAL:]PORT",
    .text =
        "Listens on 127.0.0.1 and carries each connection to that port inside of the sandbox, whatever it speaks,\n"
        "until Ctrl-C. LOCAL is the same number where it is not given; 0 takes a free one, which is printed. Up to\n"
        "64 connections at once; the sandbox needs python3 or bash.",
    .options = port_options,
    .option_count = ARRAY_LEN(port_options),
    .least_words = 2,
    .most_words = 2,
    .run = port_run,
};
