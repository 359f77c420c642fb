/* SPDX-License-Identifier: Apache-2.0 */
/* cell_floor.c - the least that can stand between a client and IPython: HTTP -> pipe -> run_cell -> pipe -> HTTP.
 *
 *   cell_floor WORKER [ARG...]
 *
 * Starts the worker (bench/cell_worker.py), which takes a line of code and gives a line of result, listens on a free
 * port of the loopback and prints that port. A thread per connection, blocking calls, one cell at a time. It answers
 * creates and kills of "boxes" with nothing behind them, so that a stock SDK and `cloche bench --only run` can use it.
 * No box, no agent, no gate; it ends when its standard input does. */
#include "base/base.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CREATED                                                                                                        \
  "{\"sandboxID\":\"floor\",\"templateID\":\"floor\",\"clientID\":\"floor\",\"envdVersion\":\"0.5.0\","                \
  "\"envdAccessToken\":\"none\",\"domain\":null}"

static FILE *to_worker, *from_worker;
static pthread_mutex_t one_cell = PTHREAD_MUTEX_INITIALIZER;

static void must(bool good, const char *what)
{
  if (good)
    return;
  perror(what);
  exit(1);
}

static pid_t worker_start(char **command)
{
  int in[2], out[2];
  must(!pipe(in) && !pipe(out), "pipe");
  pid_t pid = fork();
  must(pid >= 0, "fork");
  if (!pid) {
    must(dup2(in[0], 0) == 0 && dup2(out[1], 1) == 1, "dup2");
    close(in[1]);
    close(out[0]);
    execvp(command[0], command);
    must(false, command[0]);
  }
  close(in[0]);
  close(out[1]);
  to_worker = fdopen(in[1], "w");
  from_worker = fdopen(out[0], "r");
  must(to_worker && from_worker, "fdopen");
  return pid;
}

/* ---- one exchange ---- */

struct exchange {
  char in[16384];
  size_t have, head, body; /* bytes read; where the body begins; its length */
};

/* Reads a whole request. False when the peer is gone or said too much. */
static bool request_read(int fd, struct exchange *x)
{
  for (x->have = x->head = x->body = 0; !x->head || x->have < x->head + x->body;) {
    ssize_t n = recv(fd, x->in + x->have, sizeof(x->in) - 1 - x->have, 0);
    if (n <= 0)
      return false;
    x->have += (size_t)n;
    x->in[x->have] = 0;
    const char *end = x->head ? NULL : strstr(x->in, "\r\n\r\n");
    if (!end)
      continue;
    x->head = (size_t)(end - x->in) + 4;
    const char *length = strcasestr(x->in, "\r\ncontent-length:");
    x->body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
  }
  return true;
}

/* Runs the request's code; the result's line goes into `out`. */
static bool cell_run(const struct exchange *x, char *out, int size)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 16);
  struct json *body = json_read(&a, str_make(x->in + x->head, x->body), 0, NULL);
  struct str code = json_text(json_get(body, "code"), STR(""));
  pthread_mutex_lock(&one_cell);
  fprintf(to_worker, STR_FMT "\n", STR_ARG(code));
  fflush(to_worker);
  bool good = fgets(out, size, from_worker);
  pthread_mutex_unlock(&one_cell);
  out[strcspn(out, "\n")] = 0;
  return good;
}

static int answer_cell(const struct exchange *x, char *out, size_t size)
{
  char result[256], events[1024];
  if (!cell_run(x, result, sizeof(result)))
    return -1;
  int n = snprintf(events, sizeof(events),
                   "{\"type\":\"result\",\"text\":\"%s\",\"is_main_result\":true}\n"
                   "{\"type\":\"number_of_executions\",\"execution_count\":1}\n{\"type\":\"end_of_execution\"}\n",
                   result);
  return snprintf(
      out, size,
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
      (unsigned)n, events);
}

static int answer(const struct exchange *x, char *out, size_t size)
{
  if (!strncmp(x->in, "POST /execute ", 14))
    return answer_cell(x, out, size);
  if (!strncmp(x->in, "POST /sandboxes ", 16) || !strncmp(x->in, "POST /v2/sandboxes ", 19))
    return snprintf(out, size,
                    "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n" CREATED,
                    sizeof(CREATED) - 1);
  return snprintf(out, size, "HTTP/1.1 204 No Content\r\n\r\n");
}

static void *serve(void *arg)
{
  cleanup_fd int fd = (int)(intptr_t)arg;
  struct exchange x;
  char out[2048];
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  while (request_read(fd, &x)) {
    int n = answer(&x, out, sizeof(out));
    if (n < 0 || send(fd, out, (size_t)n, MSG_NOSIGNAL) != n)
      break;
  }
  return NULL;
}

static void *accept_all(void *arg)
{
  int listener = *(int *)arg;
  pthread_t thread;
  for (;;) {
    int fd = accept(listener, NULL, NULL);
    if (fd >= 0 && !pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd))
      pthread_detach(thread);
  }
  return NULL;
}

int main(int argc, char **argv)
{
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof(a);
  pthread_t thread;
  char c;
  if (argc < 2) {
    fprintf(stderr, "usage: cell_floor WORKER [ARG...]\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  pid_t worker = worker_start(argv + 1);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(listener >= 0 && !bind(listener, (struct sockaddr *)&a, n) && !listen(listener, 64) &&
           !getsockname(listener, (struct sockaddr *)&a, &n),
       "listen");
  must(!pthread_create(&thread, NULL, accept_all, &listener), "thread");
  printf("%d\n", ntohs(a.sin_port));
  fflush(stdout);
  while (read(0, &c, 1) > 0)
    continue;
  pthread_mutex_lock(&one_cell);
  fclose(to_worker); /* which ends the worker */
  waitpid(worker, NULL, 0);
  return 0;
}
