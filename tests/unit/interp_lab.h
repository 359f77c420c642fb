/* SPDX-License-Identifier: Apache-2.0 */
/* interp_lab.h - a context whose kernel is played by the test: the other ends of its socket and pipes, and clients that
 * write down what they are told. */
#ifndef CLOCHE_INTERP_LAB_H
#define CLOCHE_INTERP_LAB_H

#include "agent/interpreter/interp_context.h"
#include "agent/reap.h"
#include "agent/spawn.h"
#include "unit.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct lab {
  uv_loop_t loop;
  struct kernel_host host;
  struct kernel_specs *specs;
  struct contexts *all;
  struct context *context;
  int sock, out, err; /* the kernel's ends */
  pid_t pid;          /* a process that waits to be killed */
  char dir[64];
};

struct client {
  struct run run;
  struct buf seen;
  bool ended, slow;
};

static void client_line(struct run *r, struct str line)
{
  struct client *c = (struct client *)r;
  buf_adds(&c->seen, line);
  if (c->slow)
    run_pause(r);
}

static void client_end(struct run *r)
{
  ((struct client *)r)->ended = true;
}

static const struct run_ops client_ops = {.line = client_line, .end = client_end};

static inline struct client client_new(const char *code)
{
  return (struct client){.run = {.ops = &client_ops, .code = str_of(code)}, .seen = BUF_INIT(16 << 20)};
}

static inline bool client_saw(struct client *c, const char *text)
{
  return str_search(buf_str(&c->seen), str_of(text)) >= 0;
}

/* Lets everything that is ready happen. */
static inline void lab_turn(struct lab *l)
{
  for (int i = 0; i < 20; i++)
    uv_run(&l->loop, UV_RUN_NOWAIT);
}

static inline void lab_sleep(struct lab *l, int ms)
{
  for (int64_t end = clock_mono_us() + ms * 1000; clock_mono_us() < end;) {
    uv_run(&l->loop, UV_RUN_NOWAIT);
    usleep(200);
  }
}

static inline void lab_say(struct lab *l, const char *lines)
{
  assert_int_equal(write(l->sock, lines, strlen(lines)), (ssize_t)strlen(lines));
}

/* What the agent has sent, up to now. */
static inline const char *lab_heard(struct lab *l)
{
  static char text[65536];
  lab_turn(l);
  ssize_t n = recv(l->sock, text, sizeof(text) - 1, MSG_DONTWAIT);
  text[n > 0 ? n : 0] = 0;
  return text;
}

static inline void lab_kernel(struct lab *l)
{
  int pair[2], pipes[2][2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pipe2(pipes[i], O_CLOEXEC), 0);
  int ours[3] = {pair[0], pipes[0][0], pipes[1][0]};
  l->sock = pair[1];
  l->out = pipes[0][1];
  l->err = pipes[1][1];
  l->pid = fork();
  if (l->pid == 0) {
    setsid();
    for (;;)
      pause();
  }
  assert_int_equal(context_adopt(l->context, ours, l->pid), 0);
}

/* A box whose only language is a python that can't start by itself: program is what a relaunch would run. */
static inline void lab_open(struct lab *l, const char *program, size_t queue_max)
{
  char path[128], text[256];
  memset(l, 0, sizeof(*l));
  signal(SIGPIPE, SIG_IGN);
  spawn_prepare();
  uv_loop_init(&l->loop);
  snprintf(l->dir, sizeof(l->dir), "/tmp/interp_lab.XXXXXX");
  assert_non_null(mkdtemp(l->dir));
  snprintf(path, sizeof(path), "%s/python", l->dir);
  assert_int_equal(path_mkdirs(path, 0700), 0);
  snprintf(path, sizeof(path), "%s/python/kernel.json", l->dir);
  snprintf(text, sizeof(text), "{\"language\":\"python\",\"argv\":[\"%s\"],\"requires\":[]}", program);
  assert_int_equal(file_write_atomic(path, text, strlen(text), 0600), 0);
  setenv("CLOCHE_KERNELS", l->dir, 1);
  setenv("CLOCHE_JUPYTER_PATH", l->dir, 1);
  setenv("CLOCHE_LOG_BYTES", "0", 1); /* no book of what kernels print */
  l->host.loop = &l->loop;
  l->host.message_max = 100000;
  l->specs = kernel_specs_new();
  l->all = contexts_new(&l->host, l->specs, queue_max);
  l->context = contexts_default(l->all, "python");
  assert_non_null(l->context);
  lab_kernel(l);
}

static inline void lab_close(struct lab *l)
{
  contexts_free(l->all);
  lab_sleep(l, 5);
  kernel_specs_free(l->specs);
  close(l->sock);
  close(l->out);
  close(l->err);
  kill(l->pid, SIGKILL);
  waitpid(l->pid, NULL, 0);
  path_remove_tree(AT_FDCWD, l->dir);
  uv_run(&l->loop, UV_RUN_NOWAIT);
  assert_int_equal(uv_loop_close(&l->loop), 0);
}

#define READY "{\"ev\":\"ready\",\"pid\":1,\"coalesce\":true}\n"
/* Where the box has no home directory the context must move first. */
#define MOVED "{\"ev\":\"cd\",\"ok\":true}\n"

static inline void lab_ready(struct lab *l)
{
  lab_say(l, READY);
  lab_turn(l);
  if (*lab_heard(l))
    lab_say(l, MOVED);
  lab_turn(l);
}

#endif
