/* SPDX-License-Identifier: Apache-2.0 */
/* exec_command.c - `cloche exec` and the remote form of `cloche shell`: a command in a sandbox with this program's
 * standard input, output and exit status. One piece of input is under way at a time; output is read meanwhile. */
#include "cli/remote/commands.h"
#include "cli/remote/remote.h"

#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>

#define TYPED_MAX 65536
#define LOST      255 /* exit status when there is none to pass on */

struct exec {
  struct remote remote;
  struct cloche_box *box;
  struct cloche_process *process;
  struct cloche_op *input, *resize; /* what is said to the process */
  bool tty, eof;
  int signals;
  struct termios before;
  bool raw;
  char typed[TYPED_MAX];
};

static int to_stdout(const struct cloche_text *text, void *user)
{
  return fd_write_all(1, text->data, text->len);
}

static int to_stderr(const struct cloche_text *text, void *user)
{
  return fd_write_all(2, text->data, text->len);
}

static struct winsize terminal_size(void)
{
  struct winsize size = {0};
  if (ioctl(0, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
    size = (struct winsize){.ws_row = 24, .ws_col = 80};
  return size;
}

static void raw_mode(struct exec *x)
{
  if (!x->tty || tcgetattr(0, &x->before))
    return;
  struct termios raw = x->before;
  cfmakeraw(&raw);
  x->raw = !tcsetattr(0, TCSADRAIN, &raw);
}

static void resize(struct exec *x)
{
  struct winsize size = terminal_size();
  if (x->tty && cloche_op_done(x->resize))
    cloche_pty_resize(x->box, cloche_process_pid(x->process), size.ws_col, size.ws_row,
                      CLOCHE_WITH(cloche_call, .op = x->resize), NULL);
}

/* Without a terminal Ctrl-C ends the command: first SIGTERM, then SIGKILL. With one it is a key like others. */
static void take_signal(struct exec *x, int signal)
{
  if (signal == SIGWINCH)
    resize(x);
  else
    cloche_signal(x->box, cloche_process_pid(x->process), x->signals++ ? SIGKILL : SIGTERM, NULL, NULL, NULL);
}

static void take_input(struct exec *x)
{
  const struct cloche_call call = {.size = sizeof(call), .op = x->input};
  uint32_t pid = cloche_process_pid(x->process);
  ssize_t n = read(0, x->typed, sizeof(x->typed));
  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return;
  x->eof = n <= 0;
  if (n > 0 && x->tty)
    cloche_pty_input(x->box, pid, x->typed, (size_t)n, &call, NULL);
  else if (n > 0)
    cloche_stdin(x->box, pid, x->typed, (size_t)n, &call, NULL);
  else if (!x->tty)
    cloche_close_stdin(x->box, pid, &call, NULL);
}

static int pass_on(struct exec *x)
{
  struct cloche_command_result *result = NULL;
  struct cloche_op *wait = cloche_op_new(x->remote.client, NULL, NULL);
  x->input = cloche_op_new(x->remote.client, NULL, NULL);
  x->resize = cloche_op_new(x->remote.client, NULL, NULL);
  enum cloche_code code =
      cloche_wait(x->process, &result, CLOCHE_WITH(cloche_call, .op = wait, .timeout_ms = -1), &x->remote.error);
  while (!code && !cloche_op_done(wait)) {
    bool readable = false;
    int signal = remote_poll(&x->remote, !x->eof && cloche_op_done(x->input) ? 0 : -1, &readable);
    if (signal)
      take_signal(x, signal);
    if (readable && !cloche_op_done(wait))
      take_input(x);
  }
  code = code ? code : cloche_op_wait(wait, &x->remote.error);
  cloche_op_free(x->input);
  cloche_op_free(x->resize);
  cloche_op_free(wait);
  int status = code ? LOST : result->exit_code < 0 ? LOST : result->exit_code;
  cloche_free(result);
  return status;
}

static int exec_in(struct exec *x, const struct args *args)
{
  struct winsize size = terminal_size();
  struct cloche_command options = {.size = sizeof(options), .user_name = args->user, .cwd = args->workdir};
  options.argv = (const char *const *)args->tail;
  options.stdin_open = !x->tty;
  options.on_stdout = to_stdout;
  options.on_stderr = to_stderr;
  options.no_retain = true;
  if (x->tty) {
    options.cols = size.ws_col;
    options.rows = size.ws_row;
  }
  const char *line = args->tail || x->tty ? NULL : "exec bash -l";
  if (cloche_start(x->box, line, &options, &x->process, NULL, &x->remote.error))
    return remote_failed(&x->remote, args->words[0]), LOST;
  raw_mode(x);
  int status = pass_on(x);
  if (x->raw)
    tcsetattr(0, TCSADRAIN, &x->before);
  if (x->remote.error.code)
    remote_failed(&x->remote, args->words[0]);
  cloche_process_free(x->process);
  return status;
}

static int exec_or_shell(struct args *args, bool tty)
{
  struct exec x = {.tty = tty};
  int status = remote_open(args, &x.remote);
  if (status)
    return status;
  status = remote_box(&x.remote, args->words[0], &x.box) ? LOST : 0;
  if (!status) {
    status = remote_signals(&x.remote);
    status = status ? status : exec_in(&x, args);
    cloche_box_free(x.box);
  }
  remote_close(&x.remote);
  return status;
}

static int exec_run(struct args *args)
{
  if (!args->tail)
    return complain("usage: cloche exec [OPTION...] ID -- COMMAND [ARG...]"), EXIT_USAGE;
  return exec_or_shell(args, args->tty);
}

static int shell_run(struct args *args)
{
  return exec_or_shell(args, isatty(0) && isatty(1));
}

#define USER_OPTION                                                                                                    \
  {                                                                                                                    \
    "user", 'u', "NAME", "another user than the template's", OPTION_TEXT, offsetof(struct args, user), 0, 0            \
  }
#define WORKDIR_OPTION                                                                                                 \
  {                                                                                                                    \
    "workdir", 'w', "DIR", "where to begin", OPTION_TEXT, offsetof(struct args, workdir), 0, 0                         \
  }

static const struct option_spec exec_options[] = {
    {"tty", 't', NULL, "give the command a terminal", OPTION_FLAG, offsetof(struct args, tty), 0, 0},
    USER_OPTION,
    WORKDIR_OPTION,
};
static const struct option_spec shell_options[] = {USER_OPTION, WORKDIR_OPTION};

const struct command_spec exec_spec = {
    .name = "exec",
    .summary = "run a command in a sandbox",
    .usage = "ID -- COMMAND [ARG...]",
    .text = "Standard input, output and errors are passed on as they are; the exit status is the command's, 255 when\n"
            "it has none (a signal ended it, the sandbox went away). Ctrl-C ends the command; with -t it is a key\n"
            "like any other. A paused sandbox is resumed.",
    .options = exec_options,
    .option_count = ARRAY_LEN(exec_options),
    .least_words = 1,
    .most_words = 1,
    .tail = true,
    .run = exec_run,
};
const struct command_spec shell_spec = {
    .name = "shell",
    .summary = "a terminal in a sandbox",
    .usage = "ID [-- COMMAND [ARG...]]",
    .text =
        "Without a command: bash as a login shell. From a terminal the command gets one of the same size. The exit\n"
        "status is the command's; 255 when it has none.",
    .options = shell_options,
    .option_count = ARRAY_LEN(shell_options),
    .least_words = 1,
    .most_words = 1,
    .tail = true,
    .run = shell_run,
};
