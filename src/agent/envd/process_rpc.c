/* SPDX-License-Identifier: Apache-2.0 */
/* process_rpc.c - process.Process: requests in, process.h below.
 *
 * List shows the variables of a request as they were sent only when the box has an access token (the caller has then
 * shown it). In a box without one anybody who reaches the port could read them, so values are left empty there;
 * names stay. Stock clients read neither. A Start with the header Cloche-Private-Env has neither names nor values kept:
 * nothing is left that a list could show. */
#include "agent/envd/process.h"
#include "agent/envd/resolve.h"
#include "agent/envd/service.h"

static const struct msg_empty empty;

/* ---- Start ---- */

static bool has_nul(struct str s)
{
  return s.n && memchr(s.p, 0, s.n);
}

static bool config_clean(const struct msg_config *config)
{
  if (has_nul(config->cmd) || has_nul(config->cwd))
    return false;
  for (size_t i = 0; i < config->args.n; i++)
    if (has_nul(((struct str *)config->args.p)[i]))
      return false;
  const struct rpc_pair *envs = config->envs.p;
  for (size_t i = 0; i < config->envs.n; i++)
    if (has_nul(envs[i].key) || has_nul(envs[i].value))
      return false;
  return true;
}

static void env_build(const struct agent *agent, const struct user *u, const struct msg_config *config, struct env *out)
{
  env_set(out, STR("PATH"), STR(AGENT_PATH));
  env_set(out, STR("HOME"), str_of(u->home));
  env_set(out, STR("USER"), str_of(u->name));
  env_set(out, STR("LOGNAME"), str_of(u->name));
  agent_envs(agent, out);
  const struct rpc_pair *envs = config->envs.p;
  for (size_t i = 0; i < config->envs.n; i++)
    env_set(out, envs[i].key, envs[i].value);
}

static char **argv_build(struct arena *a, const struct msg_config *config)
{
  char **argv = arena_alloc(a, (config->args.n + 2) * sizeof(*argv));
  if (!argv)
    return NULL;
  argv[0] = arena_z(a, config->cmd);
  for (size_t i = 0; i < config->args.n; i++)
    argv[i + 1] = arena_z(a, ((struct str *)config->args.p)[i]);
  return argv;
}

static void start_failed(struct rpc_call *c, const struct process_plan *plan, enum spawn_stage stage, int code)
{
  const char *why = strerror(-code);
  if (stage == SPAWN_CWD && code == -ENOENT)
    rpc_fail(c, RPC_INVALID_ARGUMENT, "cwd '%s' does not exist", plan->spawn.cwd);
  else if (stage == SPAWN_CWD)
    rpc_fail(c, RPC_INVALID_ARGUMENT, "cwd '%s' cannot be entered: %s", plan->spawn.cwd, why);
  else if (stage == SPAWN_IDENTITY)
    rpc_fail(c, RPC_INTERNAL, "cannot become user '%s': %s", plan->spawn.user->name, why);
  else
    rpc_fail(c, RPC_RESOURCE_EXHAUSTED, "cannot start the process: %s", why);
}

static void plan_shape(struct process_plan *plan, const struct msg_start *req)
{
  plan->config = req->process;
  plan->tag = req->tag;
  plan->has_tag = req->has_tag;
  plan->stdin_open = !req->has_stdin || req->stdin_open;
  plan->pty = req->pty != NULL;
  if (req->pty && req->pty->size) {
    plan->cols = req->pty->size->cols;
    plan->rows = req->pty->size->rows;
  }
}

static void start(struct rpc_call *c, const void *request)
{
  const struct msg_start *req = request;
  struct process_plan plan = {0};
  struct user user;
  cleanup_buf struct buf cwd = BUF_INIT(64 << 10);
  cleanup_env struct env env = {0};
  enum spawn_stage stage = SPAWN_OK;
  int code = 0;
  if (!req->process || !config_clean(req->process)) {
    rpc_fail(c, RPC_INVALID_ARGUMENT, req->process ? "a string contains a NUL byte" : "process is missing");
    return;
  }
  if (service_user(c, &user) < 0 || service_path(c, req->process->cwd, &user, &cwd) < 0)
    return;
  plan_shape(&plan, req);
  plan.private_env = str_is(str_trim(rpc_header(c, "cloche-private-env")), "true");
  env_build(rpc_context(c), &user, req->process, &env);
  plan.spawn.argv = argv_build(rpc_arena(c), req->process);
  plan.spawn.cmd = plan.spawn.argv ? plan.spawn.argv[0] : NULL;
  plan.spawn.envp = env_array(&env);
  plan.spawn.cwd = buf_z(&cwd);
  plan.spawn.user = &user;
  if (!plan.spawn.cmd) {
    rpc_fail(c, RPC_RESOURCE_EXHAUSTED, "the command is too large");
    return;
  }
  struct process *p = process_start(rpc_loop(c), &plan, &stage, &code);
  if (!p)
    start_failed(c, &plan, stage, code);
  else
    process_subscribe(p, c, rpc_deadline_take(c));
}

/* ---- the others ---- */

/* NULL: the call has been answered. */
static struct process *chosen(struct rpc_call *c, const struct msg_selector *s)
{
  if (!s || !s->which) {
    rpc_fail(c, RPC_UNIMPLEMENTED, "invalid process selector");
    return NULL;
  }
  struct process *p = process_select(s);
  if (p)
    return p;
  if (s->which == SELECT_PID)
    rpc_fail(c, RPC_NOT_FOUND, "process with pid %u not found", s->pid);
  else
    rpc_fail(c, RPC_NOT_FOUND, "process with tag " STR_FMT " not found", STR_ARG(s->tag));
  return NULL;
}

static void connect_to(struct rpc_call *c, const void *request)
{
  const struct msg_select *req = request;
  bool named = req->process && req->process->which;
  if (named && !process_select(req->process) && process_replay(req->process, c))
    return;
  struct process *p = chosen(c, req->process);
  if (p)
    process_subscribe(p, c, 0);
}

static void list(struct rpc_call *c, const void *request UNUSED)
{
  const struct agent *agent = rpc_context(c);
  struct msg_processes all = {0};
  process_list(rpc_arena(c), &all, agent->token != NULL);
  rpc_reply(c, &all);
}

static void update(struct rpc_call *c, const void *request)
{
  const struct msg_update *req = request;
  struct process *p = chosen(c, req->process);
  if (!p)
    return;
  int rc = 0;
  if (req->pty) {
    const struct msg_size none = {0}, *size = req->pty->size ? req->pty->size : &none;
    rc = process_resize(p, size->cols, size->rows);
  }
  if (rc < 0)
    rpc_fail(c, RPC_INTERNAL, "error resizing tty: %s", rc == -ENOTTY ? "tty not assigned to process" : strerror(-rc));
  else
    rpc_reply(c, &empty);
}

static void send_input(struct rpc_call *c, const void *request)
{
  const struct msg_send_input *req = request;
  struct process *p = chosen(c, req->process);
  if (p)
    process_input(p, req->input, c, false);
}

static void send_signal(struct rpc_call *c, const void *request)
{
  const struct msg_signal *req = request;
  struct process *p = chosen(c, req->process);
  if (!p)
    return;
  if (req->signal != 9 && req->signal != 15) {
    rpc_fail(c, RPC_UNIMPLEMENTED, "invalid signal: %u", req->signal);
    return;
  }
  int rc = process_signal(p, (int)req->signal);
  if (rc < 0)
    rpc_fail(c, RPC_INTERNAL, "error sending signal: %s", strerror(-rc));
  else
    rpc_reply(c, &empty);
}

static void close_stdin(struct rpc_call *c, const void *request)
{
  const struct msg_select *req = request;
  struct process *p = chosen(c, req->process);
  if (p)
    process_close_stdin(p, c);
}

/* The stream remembers its process by pid alone, so that one which ends meanwhile is simply not found. */
static void stream_input(struct rpc_call *c, const void *request)
{
  const struct msg_stream_input *req = request;
  uint32_t *pid = rpc_data(c);
  if (req->which == STREAM_KEEPALIVE)
    return;
  if (req->which == STREAM_START) {
    struct process *p = chosen(c, req->start->process);
    uint32_t *slot = p ? arena_alloc(rpc_arena(c), sizeof(*slot)) : NULL;
    if (!slot)
      return;
    *slot = (uint32_t)process_pid(p);
    rpc_watch(c, NULL, slot);
  } else if (req->which == STREAM_DATA && pid) {
    struct msg_selector by_pid = {.which = SELECT_PID, .pid = *pid};
    struct process *p = chosen(c, &by_pid);
    if (p)
      process_input(p, req->data->input, c, true);
  } else if (req->which == STREAM_DATA) {
    rpc_fail(c, RPC_FAILED_PRECONDITION, "the stream must begin with a start event");
  } else {
    rpc_fail(c, RPC_UNIMPLEMENTED, "invalid event type");
  }
}

static void stream_input_end(struct rpc_call *c)
{
  rpc_reply(c, &empty);
}

const struct rpc_method process_methods[] = {
    {"/process.Process/Start", RPC_SERVER_STREAM, &schema_start, &schema_event, start, NULL},
    {"/process.Process/Connect", RPC_SERVER_STREAM, &schema_select, &schema_event, connect_to, NULL},
    {"/process.Process/List", RPC_UNARY, &schema_empty, &schema_processes, list, NULL},
    {"/process.Process/Update", RPC_UNARY, &schema_update, &schema_empty, update, NULL},
    {"/process.Process/SendInput", RPC_UNARY, &schema_send_input, &schema_empty, send_input, NULL},
    {"/process.Process/StreamInput", RPC_CLIENT_STREAM, &schema_stream_input, &schema_empty, stream_input,
     stream_input_end},
    {"/process.Process/SendSignal", RPC_UNARY, &schema_signal, &schema_empty, send_signal, NULL},
    {"/process.Process/CloseStdin", RPC_UNARY, &schema_select, &schema_empty, close_stdin, NULL},
    {0},
};
