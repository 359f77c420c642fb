/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - one session, one message per line. The end of the input is the end of the session. */
#include "mcp/lines.h"

#include <signal.h>
#include <stdio.h>

#define LINE_MAX_BYTES ((size_t)64 << 20)

struct stdio {
  uv_loop_t *loop;
  uv_poll_t poll;
  uv_signal_t term, intr;
  struct mcp_session *session;
  struct buf line;
  bool ending;
};

static void say(struct str message)
{
  fwrite(message.p, 1, message.n, stdout);
  fputc('\n', stdout);
  fflush(stdout);
}

static void session_over(void *arg)
{
  struct stdio *io = arg;
  uv_stop(io->loop);
}

static void end(struct stdio *io)
{
  if (io->ending)
    return;
  io->ending = true;
  uv_poll_stop(&io->poll);
  mcp_session_end(io->session, session_over, io);
}

static void on_message(struct str message, bool last, void *arg)
{
  if (message.n)
    say(message);
}

static void take_line(struct stdio *io, struct str line)
{
  struct err err = ERR_NONE;
  int code;
  if (mcp_session_take(io->session, line, on_message, NULL, NULL, &code, &err)) {
    cleanup_buf struct buf b = BUF_INIT(4096);
    mcp_error_add(&b, STR_NONE, code, err.msg);
    say(buf_str(&b));
  }
}

static void take_lines(struct stdio *io)
{
  struct str rest = buf_str(&io->line);
  for (ptrdiff_t at; (at = str_find(rest, '\n')) >= 0; rest = str_skip(rest, (size_t)at + 1)) {
    struct str line = str_trim(str_sub(rest, 0, (size_t)at));
    if (line.n)
      take_line(io, line);
  }
  buf_drop(&io->line, io->line.n - rest.n);
}

static void on_input(uv_poll_t *poll, int status, int events)
{
  struct stdio *io = poll->data;
  char chunk[65536];
  ssize_t n = read(0, chunk, sizeof(chunk));
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0) {
    end(io);
    return;
  }
  if (buf_add(&io->line, chunk, (size_t)n)) {
    log_error("a message is longer than %zu bytes", LINE_MAX_BYTES);
    end(io);
    return;
  }
  take_lines(io);
}

static void on_signal(uv_signal_t *s, int signum)
{
  end(s->data);
}

int mcp_lines_run(const struct cloche_config *config, const struct mcp_options *options)
{
  static uv_loop_t loop;
  static struct stdio io;
  struct err err = ERR_NONE;
  signal(SIGPIPE, SIG_IGN);
  uv_loop_init(&loop);
  io = (struct stdio){.loop = &loop, .line = BUF_INIT(LINE_MAX_BYTES)};
  io.session = mcp_session_new(&loop, config, options, &err);
  if (!io.session) {
    fprintf(stderr, "cloche mcp: %s\n", err.msg);
    return 1;
  }
  int r = uv_poll_init(&loop, &io.poll, 0);
  if (r) {
    fprintf(stderr, "cloche mcp: standard input can't be waited for (%s); give it a pipe\n", uv_strerror(r));
    return 1;
  }
  uv_signal_init(&loop, &io.term);
  uv_signal_init(&loop, &io.intr);
  io.poll.data = io.term.data = io.intr.data = &io;
  uv_signal_start(&io.term, on_signal, SIGTERM);
  uv_signal_start(&io.intr, on_signal, SIGINT);
  uv_poll_start(&io.poll, UV_READABLE, on_input);
  uv_run(&loop, UV_RUN_DEFAULT);
  buf_free(&io.line);
  return 0;
}
