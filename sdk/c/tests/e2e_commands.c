/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "e2e.h"

static struct cloche_command_result *ran(const char *line, const struct cloche_command *options)
{
  struct cloche_command_result *r;
  OK(cloche_command(e2e.box, line, options, &r, NULL, ERR));
  return r;
}

static void a_command_s_end_is_told_in_full(void)
{
  const struct cloche_pair envs[] = {{"WHO", "me \"and\" you"}};
  struct cloche_command_result *r =
      ran("echo $WHO; pwd; id -un; echo no >&2; exit 7",
          WITH(cloche_command, .envs = envs, .env_count = 1, .cwd = "/tmp", .user_name = "root"));
  SAME(r->out.data, "me \"and\" you\n/tmp\nroot\n");
  SAME(r->err.data, "no\n");
  SAME(r->status, "exit status 7");
  CHECK(r->exit_code == 7 && r->pid > 0 && r->error);
  cloche_free(r);
  r = ran("kill -9 $$", NULL);
  CHECK(r->exit_code == -1);
  SAME(r->status, "signal: killed");
  cloche_free(r);
  static const char *const argv[] = {"/usr/bin/printf", "%s|", "a b", "$HOME", NULL};
  r = ran(NULL, WITH(cloche_command, .argv = argv));
  SAME(r->out.data, "a b|$HOME|");
  cloche_free(r);
  FAILS(CLOCHE_EINVAL, cloche_command(e2e.box, "true", WITH(cloche_command, .cwd = "/no/such"), &r, NULL, ERR));
}

static void a_deadline_kills_the_command(void)
{
  struct cloche_command_result *r;
  FAILS(CLOCHE_ETIMEOUT, cloche_command(e2e.box, "sleep 4711", NULL, &r, WITHIN(300), ERR));
  r = ran("for i in $(seq 50); do pgrep -f '^sleep 4711' >/dev/null || exit 0; sleep 0.1; done; exit 1", NULL);
  CHECK(r->exit_code == 0);
  cloche_free(r);
}

static int collect(const struct cloche_text *text, void *user)
{
  strncat(user, text->data, 200);
  return 0;
}

static void a_background_process_takes_input_and_signals(void)
{
  char heard[512] = "";
  struct cloche_process *p, *second;
  struct cloche_command_result *r;
  struct cloche_process_list *list;
  const struct cloche_pair envs[] = {{"SECRET_WORD", "xyzzy"}};
  bool existed;
  OK(cloche_start(e2e.box, "cat",
                  WITH(cloche_command, .stdin_open = true, .on_stdout = collect, .user = heard, .tag = "c-cat",
                       .envs = envs, .env_count = 1),
                  &p, NULL, ERR));
  uint32_t pid = cloche_process_pid(p);
  OK(cloche_processes(e2e.box, &list, NULL, ERR));
  bool found = false;
  for (size_t i = 0; i < list->count; i++)
    if (list->items[i].pid == pid) {
      found = true;
      SAME(list->items[i].tag, "c-cat");
      for (size_t k = 0; k < list->items[i].env_count; k++)
        CHECK(strcmp(list->items[i].envs[k].name, "SECRET_WORD") != 0);
    }
  CHECK(found);
  cloche_free(list);
  OK(cloche_reconnect(e2e.box, pid, NULL, &second, NULL, ERR));
  CHECK(cloche_process_pid(second) == pid);
  OK(cloche_stdin(e2e.box, pid, "first\n", 6, NULL, ERR));
  OK(cloche_stdin(e2e.box, pid, "second\n", 7, NULL, ERR));
  OK(cloche_close_stdin(e2e.box, pid, NULL, ERR));
  OK(cloche_wait(p, &r, WITHIN(20000), ERR));
  CHECK(r->exit_code == 0);
  SAME(r->out.data, "first\nsecond\n");
  SAME(heard, "first\nsecond\n");
  cloche_free(r);
  OK(cloche_wait(second, &r, WITHIN(20000), ERR));
  SAME(r->out.data, "first\nsecond\n");
  cloche_free(r);
  OK(cloche_wait(p, &r, NULL, ERR)); /* once more */
  cloche_free(r);
  cloche_process_free(p);
  cloche_process_free(second);
  OK(cloche_start(e2e.box, "sleep 60", NULL, &p, NULL, ERR));
  FAILS(CLOCHE_ETIMEOUT, cloche_wait(p, &r, WITHIN(100), ERR));
  OK(cloche_signal(e2e.box, cloche_process_pid(p), 15, &existed, NULL, ERR));
  CHECK(existed);
  OK(cloche_wait(p, &r, WITHIN(20000), ERR));
  SAME(r->status, "signal: terminated");
  cloche_free(r);
  cloche_process_free(p);
  OK(cloche_signal(e2e.box, 999999, 9, &existed, NULL, ERR));
  CHECK(!existed);
  FAILS(CLOCHE_ENOTFOUND, cloche_reconnect(e2e.box, 999999, NULL, &p, NULL, ERR));
  CHECK(p == NULL);
  FAILS(CLOCHE_EINVAL, cloche_signal(e2e.box, 1, 1, NULL, NULL, ERR));
}

static void a_process_goes_on_when_its_handle_is_freed(void)
{
  struct cloche_process *p;
  struct cloche_command_result *r;
  bool existed;
  OK(cloche_start(e2e.box, "sleep 30", NULL, &p, NULL, ERR));
  uint32_t pid = cloche_process_pid(p);
  cloche_process_free(p);
  char line[64];
  snprintf(line, sizeof line, "kill -0 %u", pid);
  r = ran(line, NULL);
  CHECK(r->exit_code == 0);
  cloche_free(r);
  OK(cloche_signal(e2e.box, pid, 9, &existed, NULL, ERR));
  CHECK(existed);
}

static void a_terminal_has_a_size_and_takes_keys(void)
{
  char heard[4096] = "";
  struct cloche_process *p;
  struct cloche_command_result *r;
  OK(cloche_start(e2e.box, NULL, WITH(cloche_command, .cols = 80, .rows = 24, .on_stdout = collect, .user = heard), &p,
                  NULL, ERR));
  uint32_t pid = cloche_process_pid(p);
  OK(cloche_pty_resize(e2e.box, pid, 100, 30, NULL, ERR));
  OK(cloche_pty_input(e2e.box, pid, "stty size; echo T=$TERM; exit 3\n", 32, NULL, ERR));
  OK(cloche_wait(p, &r, WITHIN(20000), ERR));
  CHECK(r->exit_code == 3 && strstr(r->out.data, "30 100") && strstr(r->out.data, "T=xterm-256color"));
  cloche_free(r);
  cloche_process_free(p);
}

static void much_output_arrives_whole_and_in_order(void)
{
  struct cloche_command_result *r = ran("seq 1 300000", NULL);
  CHECK(r->exit_code == 0 && r->out.len == 1988895);
  CHECK(strcmp(r->out.data + r->out.len - 7, "300000\n") == 0);
  cloche_free(r);
  r = ran("yes | head -c 1000000; echo end >&2", WITH(cloche_command, .no_retain = true));
  CHECK(r->out.len == 0 && r->err.len == 0);
  cloche_free(r);
}

const struct e2e_case command_cases[] = {
    {"a command's end is told in full", a_command_s_end_is_told_in_full},
    {"a deadline kills the command", a_deadline_kills_the_command},
    {"a background process takes input and signals", a_background_process_takes_input_and_signals},
    {"a process goes on when its handle is freed", a_process_goes_on_when_its_handle_is_freed},
    {"a terminal has a size and takes keys", a_terminal_has_a_size_and_takes_keys},
    {"much output arrives whole and in order", much_output_arrives_whole_and_in_order},
    {0}};
