/* SPDX-License-Identifier: Apache-2.0 */
/* start_command.c - see start_command.h. */
#include "agent/build/start_command.h"
#include "agent/build/build_exec.h"

static struct {
  char *command, *ready;
  char *user, *workdir; /* of an inherited command; NULL: the template's own */
  struct env env;       /* the same */
  bool inherited;
  bool begun, asking, open; /* open: it is ready, or not waited for any longer */
  void (*then)(void);
  struct agent *agent;
  uv_timer_t ask, limit;
} start;

void start_command_set(struct str command, struct str ready)
{
  free(start.command);
  free(start.ready);
  start.command = command.n ? xstrndup(command.p, command.n) : NULL;
  start.ready = ready.n ? xstrndup(ready.p, ready.n) : NULL;
}

void start_command_context(const struct json *context)
{
  struct str user = json_text(json_get(context, "user"), STR_NONE);
  struct str workdir = json_text(json_get(context, "workdir"), STR_NONE);
  start.inherited = json_is(context, JSON_OBJECT);
  free(start.user);
  free(start.workdir);
  env_free(&start.env);
  start.user = user.n ? xstrndup(user.p, user.n) : NULL;
  start.workdir = workdir.n ? xstrndup(workdir.p, workdir.n) : NULL;
  if (start.inherited)
    env_merge_json(&start.env, json_get(context, "env"));
}

static int shell(const char *command, void (*over)(int status, void *arg))
{
  char *const argv[] = {(char *)"/bin/bash", (char *)"-l", (char *)"-c", (char *)command, NULL};
  struct exec_plan plan = {.user = str_of(start.user ? start.user : start.agent->default_user),
                           .cwd = start.workdir ? str_of(start.workdir) : STR_NONE,
                           .argv = argv,
                           .env = start.inherited ? &start.env : NULL,
                           .input = -1,
                           .over = over};
  struct err err = ERR_NONE;
  int rc = exec_run(start.agent, &plan, &err);
  if (rc < 0)
    log_warn("start command: %s", err.msg);
  return rc;
}

static void opened(void)
{
  if (start.open)
    return;
  start.open = true;
  uv_timer_stop(&start.ask);
  uv_timer_stop(&start.limit);
  if (start.then)
    start.then();
}

static void limit_reached(uv_timer_t *t UNUSED)
{
  log_warn("the start command is not ready after %d s; continuing without it", START_WAIT_MS / 1000);
  opened();
}

static void ask(uv_timer_t *t UNUSED);

static void asked(int status, void *arg UNUSED)
{
  start.asking = false;
  if (status == 0)
    opened();
  else if (!start.open)
    uv_timer_start(&start.ask, ask, START_ASK_MS, 0);
}

static void ask(uv_timer_t *t UNUSED)
{
  start.asking = true;
  if (shell(start.ready, asked) < 0)
    opened();
}

static void command_over(int status, void *arg UNUSED)
{
  log_info("the start command ended with %d", status);
}

void start_command_begin(struct agent *a)
{
  if (start.begun)
    return;
  start.begun = true;
  start.agent = a;
  uv_timer_init(a->loop, &start.ask);
  uv_timer_init(a->loop, &start.limit);
  bool failed = start.command && shell(start.command, command_over) < 0;
  start.open = failed || !start.command || !start.ready;
  if (start.open)
    return;
  uv_timer_start(&start.limit, limit_reached, START_WAIT_MS, 0);
  ask(NULL);
}

void start_command_wait(struct agent *a UNUSED, void (*then)(void))
{
  if (start.open)
    then();
  else
    start.then = then;
}
