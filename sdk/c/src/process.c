/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands and terminals. What is known of a process (struct proc) is shared by the stream that reads it and the handle
 * that the caller has, so that either may go first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

struct proc {
  int refs;
  struct cloche_command o; /* callbacks and no_retain count; its texts are gone */
  uint32_t pid;
  struct buf out, err;
  bool started, ended;
  int exit_code;
  char status[96], error[96];
  bool has_error;
  struct cloche_process *handle;
};

struct cloche_process {
  struct cloche *client;
  struct cloche_op *stream;
  struct cloche_op *starting; /* the op that waits for the first message; it owns this handle until then */
  struct proc *proc;
  bool over;
  struct cloche_error failure; /* of the stream */
};

struct proc_ref {
  struct proc *proc;
};

static void proc_unref(struct proc *p)
{
  if (!p || --p->refs)
    return;
  buf_free(&p->out);
  buf_free(&p->err);
  free(p);
}

static void ref_free(void *state)
{
  proc_unref(((struct proc_ref *)state)->proc);
}

static struct proc *proc_new(struct cloche_op *op, const struct cloche_command *o)
{
  struct proc *p = calloc(1, sizeof *p);
  if (!p || !op_state(op, sizeof(struct proc_ref), ref_free)) {
    free(p);
    op->failed = CLOCHE_ENOMEM;
    return NULL;
  }
  p->refs = 1;
  p->o = *o;
  p->out.max = p->err.max = op->client->max_answer;
  ((struct proc_ref *)op->state)->proc = p;
  return p;
}

static struct proc *proc_of(struct cloche_op *op)
{
  return ((struct proc_ref *)op->state)->proc;
}

static enum cloche_code canceled(struct cloche_op *op, int said)
{
  return said ? op_fail(op, CLOCHE_ECANCELED, "canceled by a callback") : CLOCHE_OK;
}

static enum cloche_code on_output(struct cloche_op *op, struct proc *p, const struct json *coded, bool is_error)
{
  struct buf *kept = is_error ? &p->err : &p->out;
  unsigned char *bytes = malloc(coded->len / 4 * 3 + 4);
  if (!bytes)
    return CLOCHE_ENOMEM;
  long n = base64_decode(coded->text, coded->len, bytes);
  enum cloche_code code = n < 0 ? op_fail(op, CLOCHE_EPROTO, "output that is no base64") : CLOCHE_OK;
  if (code == CLOCHE_OK) {
    bytes[n] = 0;
    if (!p->o.no_retain)
      buf_add(kept, bytes, (size_t)n);
    struct cloche_text text = {(char *)bytes, (size_t)n, NULL};
    cloche_text_fn *tell = is_error ? p->o.on_stderr : p->o.on_stdout;
    if (kept->failed && kept->len + (size_t)n > kept->max)
      code = op_fail(op, CLOCHE_EPROTO, "the output is longer than %zu bytes", kept->max);
    else if (kept->failed)
      code = CLOCHE_ENOMEM;
    else if (tell)
      code = canceled(op, tell(&text, p->o.user));
  }
  free(bytes);
  return code;
}

static void handle_started(struct cloche_process *handle);

static enum cloche_code on_start(struct cloche_op *op, struct proc *p, const struct json *start)
{
  p->pid = (uint32_t)json_int(json_get(start, "pid"), 0);
  p->started = true;
  if (p->handle)
    handle_started(p->handle);
  return p->o.on_start && !op->free_pending ? canceled(op, p->o.on_start(p->pid, p->o.user)) : CLOCHE_OK;
}

static void on_end(struct proc *p, const struct json *end)
{
  const char *status = json_text(end, "status"), *error = json_text(end, "error");
  p->exit_code = (int)json_int(json_get(end, "exitCode"), 0);
  snprintf(p->status, sizeof p->status, "%s", status ? status : "");
  snprintf(p->error, sizeof p->error, "%s", error ? error : "");
  p->has_error = error != NULL;
  p->ended = true;
}

static enum cloche_code on_message(struct cloche_op *op, const struct json *message)
{
  struct proc *p = proc_of(op);
  const struct json *event = json_get(message, "event"), *j;
  if ((j = json_get(event, "start")))
    return on_start(op, p, j);
  const struct json *data = json_get(event, "data");
  if ((j = json_get(data, "stdout")) || (j = json_get(data, "pty")))
    return j->type == JSON_STRING ? on_output(op, p, j, false) : CLOCHE_OK;
  if ((j = json_get(data, "stderr")))
    return j->type == JSON_STRING ? on_output(op, p, j, true) : CLOCHE_OK;
  if ((j = json_get(event, "end")))
    on_end(p, j);
  return CLOCHE_OK;
}

static enum cloche_code on_stream(struct cloche_op *op)
{
  struct proc *p = proc_of(op);
  p->refs++;
  enum cloche_code code = frame_read(op, on_message);
  proc_unref(p);
  return code;
}

static enum cloche_code give_result(struct cloche_op *op, const struct proc *p)
{
  struct cloche_command_result *r = result_new(sizeof *r);
  if (!r)
    return CLOCHE_ENOMEM;
  struct arena *a = result_arena(r);
  r->exit_code = p->exit_code;
  r->pid = p->pid;
  r->out = (struct cloche_text){arena_text(a, p->out.data, p->out.len), p->out.len, NULL};
  r->err = (struct cloche_text){arena_text(a, p->err.data, p->err.len), p->err.len, NULL};
  r->status = arena_text(a, p->status, strlen(p->status));
  r->error = p->has_error ? arena_text(a, p->error, strlen(p->error)) : NULL;
  if (r->out.data && r->err.data && r->status && (r->error || !p->has_error))
    return answer(op, r);
  cloche_free(r);
  return CLOCHE_ENOMEM;
}

static enum cloche_code reply_stream(struct cloche_op *op)
{
  enum cloche_code code = frame_reply(op);
  if (code == CLOCHE_OK && !proc_of(op)->ended)
    code = op_fail(op, CLOCHE_ENET, "the stream ended before the process");
  return code;
}

static enum cloche_code reply_command(struct cloche_op *op)
{
  enum cloche_code code = reply_stream(op);
  return code == CLOCHE_OK ? give_result(op, proc_of(op)) : code;
}

static bool has_env(const struct cloche_command *o, const char *name)
{
  for (size_t i = 0; i < o->env_count; i++)
    if (strcmp(o->envs[i].name, name) == 0)
      return true;
  return false;
}

static void put_envs(struct buf *b, const struct cloche_command *o, bool pty)
{
  static const struct cloche_pair usual[] = {{"TERM", "xterm-256color"}, {"LANG", "C.UTF-8"}, {"LC_ALL", "C.UTF-8"}};
  put_pairs(b, o->envs, o->env_count);
  if (!pty || b->failed)
    return;
  b->len--;
  bool first = o->env_count == 0;
  for (int i = 0; i < 3; i++) {
    if (has_env(o, usual[i].name))
      continue;
    buf_printf(b, "%s\"%s\":\"%s\"", first ? "" : ",", usual[i].name, usual[i].value);
    first = false;
  }
  buf_puts(b, "}");
}

static void put_start(struct buf *b, const char *line, const struct cloche_command *o)
{
  bool pty = o->cols > 0 && o->rows > 0;
  buf_puts(b, "{\"process\":{\"cmd\":");
  if (o->argv && o->argv[0]) {
    buf_json(b, o->argv[0]);
    buf_puts(b, ",\"args\":");
    put_texts(b, o->argv + 1);
  } else if (line) {
    const char *const args[] = {"-l", "-c", line, NULL};
    buf_puts(b, "\"/bin/bash\",\"args\":");
    put_texts(b, args);
  } else {
    buf_puts(b, "\"/bin/bash\",\"args\":[\"-i\",\"-l\"]");
  }
  buf_puts(b, ",\"envs\":");
  put_envs(b, o, pty);
  if (o->cwd)
    buf_puts(b, ",\"cwd\":"), buf_json(b, o->cwd);
  buf_puts(b, "}");
  if (pty)
    buf_printf(b, ",\"pty\":{\"size\":{\"cols\":%d,\"rows\":%d}}", o->cols, o->rows);
  else
    buf_printf(b, ",\"stdin\":%s", o->stdin_open ? "true" : "false");
  if (o->tag)
    buf_puts(b, ",\"tag\":"), buf_json(b, o->tag);
  buf_puts(b, "}");
}

static void start_request(struct cloche_op *op, const char *line, const struct cloche_command *o, bool limited)
{
  req_rpc(op, "/process.Process/Start", true, o->user_name);
  req_header(op, "Cloche-Private-Env", "true");
  if (limited && op->timeout_ms > 0) {
    char ms[24];
    snprintf(ms, sizeof ms, "%ld", op->timeout_ms > 9999999999L ? 9999999999L : op->timeout_ms);
    req_header(op, "Connect-Timeout-Ms", ms);
  }
  put_start(&op->body, line, o);
  req_stream_body(op);
  op->on_data = on_stream;
}

struct cloche_op *command_begin(struct cloche_box *box, const char *line, const struct cloche_command *o,
                                enum op_kind kind, const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = op_begin(box->client, box, call, kind, error);
  if (!op)
    return NULL;
  start_request(op, line, o, true);
  proc_new(op, o);
  return op;
}

enum cloche_code command_ended(struct cloche_op *op, int *exit_code, const char **out, const char **err)
{
  enum cloche_code code = reply_stream(op);
  const struct proc *p = proc_of(op);
  *exit_code = p->exit_code;
  *out = p->out.data ? p->out.data : "";
  *err = p->err.data ? p->err.data : "";
  return code;
}

enum cloche_code command_result(struct cloche_op *op)
{
  return give_result(op, proc_of(op));
}

enum cloche_code cloche_command(struct cloche_box *box, const char *line, const struct cloche_command *options,
                                struct cloche_command_result **result, const struct cloche_call *call,
                                struct cloche_error *error)
{
  OPTIONS(cloche_command, o, options);
  if (result)
    *result = NULL;
  if (!line && !o.argv && !o.cols)
    return error_set(error, CLOCHE_EINVAL, "no command");
  struct cloche_op *op = command_begin(box, line, &o, OP_COMMAND, call, error);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply_command;
  op->out = result;
  return op_go(op, error);
}

static void handle_free(struct cloche_process *h)
{
  if (h->proc)
    h->proc->handle = NULL;
  cloche_op_free(h->stream);
  proc_unref(h->proc);
  cloche_error_clear(&h->failure);
  free(h);
}

static void handle_started(struct cloche_process *h)
{
  struct cloche_op *op = h->starting;
  if (!op)
    return;
  h->starting = NULL;
  *(struct cloche_process **)op->out = h;
  *(struct cloche_process **)op->state = NULL;
  op_end(op, CLOCHE_OK);
}

static enum cloche_code finish_wait(struct cloche_op *op, const struct cloche_process *h)
{
  if (h->failure.code != CLOCHE_OK) {
    op_error_from(op, &h->failure);
    return h->failure.code;
  }
  return give_result(op, h->proc);
}

static struct cloche_op *waiter_of(struct cloche *c, const struct cloche_process *h)
{
  for (struct cloche_op *op = c->ops; op; op = op->next)
    if (op->waits_for == h)
      return op;
  return NULL;
}

static void stream_over(struct cloche_op *stream, const struct cloche_error *error, void *user)
{
  struct cloche_process *h = user;
  struct cloche *c = h->client;
  h->over = true;
  if (error) {
    h->failure = *error;
    h->failure.message = error->message ? strdup(error->message) : NULL;
    h->failure.cause = error->cause ? strdup(error->cause) : NULL;
  }
  if (h->starting) { /* it never began; the end of the op frees the handle */
    struct cloche_op *op = h->starting;
    h->starting = NULL;
    op_error_from(op, error ? error : &(struct cloche_error){.code = CLOCHE_EPROTO});
    op_end(op, op->error.code);
    return;
  }
  struct cloche_op *op;
  h->proc->refs++;
  struct proc *p = h->proc;
  while (p->handle && (op = waiter_of(c, h))) {
    op->waits_for = NULL;
    op_end(op, finish_wait(op, h));
  }
  proc_unref(p);
}

static void start_free(void *state)
{
  struct cloche_process *h = *(struct cloche_process **)state;
  if (!h)
    return;
  h->starting = NULL;
  handle_free(h);
}

/* Two operations: the stream, which lives as long as the handle, and the one that waits for its first message. */
static enum cloche_code start_stream(struct cloche_box *box, const char *line, uint32_t pid,
                                     const struct cloche_command *o, struct cloche_process **process,
                                     const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche *c = box->client;
  *process = NULL;
  struct cloche_op *op = op_begin(c, box, call, OP_CONTROL, error);
  if (!op)
    return op_not_begun(call);
  op->passive = true;
  op->out = process;
  struct cloche_process *h = calloc(1, sizeof *h);
  if (!h || !op_state(op, sizeof h, start_free)) {
    free(h);
    op->failed = CLOCHE_ENOMEM;
    return op_go(op, error);
  }
  *(struct cloche_process **)op->state = h;
  h->client = c;
  h->stream = cloche_op_new(c, stream_over, h);
  struct cloche_call for_stream = {.size = sizeof for_stream, .op = h->stream};
  struct cloche_op *stream = h->stream ? op_begin(c, box, &for_stream, OP_ENDLESS, error) : NULL;
  if (!stream) {
    op->failed = CLOCHE_ENOMEM;
    return op_go(op, error);
  }
  if (line || !pid) {
    start_request(stream, line, o, false);
  } else {
    req_rpc(stream, "/process.Process/Connect", true, NULL);
    buf_printf(&stream->body, "{\"process\":{\"pid\":%u}}", pid);
    req_stream_body(stream);
    stream->on_data = on_stream;
  }
  stream->on_reply = reply_stream;
  h->proc = proc_new(stream, o);
  if (h->proc) {
    h->proc->refs++;
    h->proc->handle = h;
  }
  h->starting = op;
  struct cloche_error why = {0};
  enum cloche_code code = op_go(stream, &why); /* gives back the second turn of the lock */
  if (code != CLOCHE_OK) {
    h->starting = NULL;
    op_error_from(op, &why);
    op->failed = code;
    cloche_error_clear(&why);
  }
  return op_go(op, error);
}

enum cloche_code cloche_start(struct cloche_box *box, const char *line, const struct cloche_command *options,
                              struct cloche_process **process, const struct cloche_call *call,
                              struct cloche_error *error)
{
  OPTIONS(cloche_command, o, options);
  if (!line && !o.argv && !o.cols)
    return error_set(error, CLOCHE_EINVAL, "no command");
  return start_stream(box, line, 0, &o, process, call, error);
}

enum cloche_code cloche_reconnect(struct cloche_box *box, uint32_t pid, const struct cloche_command *options,
                                  struct cloche_process **process, const struct cloche_call *call,
                                  struct cloche_error *error)
{
  OPTIONS(cloche_command, o, options);
  if (!pid)
    return error_set(error, CLOCHE_EINVAL, "0 is no pid");
  return start_stream(box, NULL, pid, &o, process, call, error);
}

uint32_t cloche_process_pid(const struct cloche_process *process)
{
  return process->proc->pid;
}

enum cloche_code cloche_wait(struct cloche_process *process, struct cloche_command_result **result,
                             const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche *c = process->client;
  if (result)
    *result = NULL;
  struct cloche_op *op = op_begin(c, NULL, call, OP_ENDLESS, error);
  if (!op)
    return op_not_begun(call);
  op->passive = true;
  op->out = result;
  if (!process->over) {
    op->waits_for = process;
    return op_go(op, error);
  }
  /* Over already: the op is linked and ended by the next drive, as if it had just happened. */
  op->finished = true;
  op->result = CURLE_OK;
  enum cloche_code code = finish_wait(op, process);
  if (code == CLOCHE_OK) {
    op->on_reply = reply_ok;
    op->status = 200;
  } else {
    op->failed = code;
  }
  return op_go(op, error);
}

void cloche_process_free(struct cloche_process *process)
{
  if (!process)
    return;
  struct cloche *c = process->client;
  client_lock(c);
  struct cloche_op *op;
  process->proc->handle = NULL;
  while ((op = waiter_of(c, process))) {
    op->waits_for = NULL;
    op_end(op, CLOCHE_ECANCELED);
  }
  handle_free(process);
  client_unlock(c);
}

/* The small calls on one process. */
static struct cloche_op *begin_on(struct cloche_box *box, const char *method, uint32_t pid,
                                  const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = op_begin(box->client, box, call, OP_CONTROL, error);
  if (!op)
    return NULL;
  req_rpc(op, method, false, NULL);
  buf_printf(&op->body, "{\"process\":{\"pid\":%u}", pid);
  op->on_reply = reply_ok;
  return op;
}

static enum cloche_code send_input(struct cloche_box *box, uint32_t pid, const char *kind, const void *data, size_t len,
                                   const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin_on(box, "/process.Process/SendInput", pid, call, error);
  if (!op)
    return op_not_begun(call);
  buf_printf(&op->body, ",\"input\":{\"%s\":\"", kind);
  buf_base64(&op->body, data, len);
  buf_puts(&op->body, "\"}}");
  return op_go(op, error);
}

enum cloche_code cloche_stdin(struct cloche_box *box, uint32_t pid, const void *data, size_t len,
                              const struct cloche_call *call, struct cloche_error *error)
{
  return send_input(box, pid, "stdin", data, len, call, error);
}

enum cloche_code cloche_pty_input(struct cloche_box *box, uint32_t pid, const void *data, size_t len,
                                  const struct cloche_call *call, struct cloche_error *error)
{
  return send_input(box, pid, "pty", data, len, call, error);
}

enum cloche_code cloche_pty_resize(struct cloche_box *box, uint32_t pid, int cols, int rows,
                                   const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin_on(box, "/process.Process/Update", pid, call, error);
  if (!op)
    return op_not_begun(call);
  buf_printf(&op->body, ",\"pty\":{\"size\":{\"cols\":%d,\"rows\":%d}}}", cols, rows);
  return op_go(op, error);
}

enum cloche_code cloche_close_stdin(struct cloche_box *box, uint32_t pid, const struct cloche_call *call,
                                    struct cloche_error *error)
{
  struct cloche_op *op = begin_on(box, "/process.Process/CloseStdin", pid, call, error);
  if (!op)
    return op_not_begun(call);
  buf_puts(&op->body, "}");
  return op_go(op, error);
}

enum cloche_code cloche_signal(struct cloche_box *box, uint32_t pid, int signal, bool *existed,
                               const struct cloche_call *call, struct cloche_error *error)
{
  if (signal != 9 && signal != 15)
    return error_set(error, CLOCHE_EINVAL, "signal %d: only 9 (SIGKILL) and 15 (SIGTERM) can be sent", signal);
  struct cloche_op *op = begin_on(box, "/process.Process/SendSignal", pid, call, error);
  if (!op)
    return op_not_begun(call);
  buf_printf(&op->body, ",\"signal\":\"%s\"}", signal == 9 ? "SIGNAL_SIGKILL" : "SIGNAL_SIGTERM");
  op->on_reply = reply_existed;
  op->out = existed;
  return op_go(op, error);
}

#define AT(key, kind, member)                                                                                          \
  {                                                                                                                    \
    key, kind, offsetof(struct cloche_process_info, member), 0, NULL                                                   \
  }
static const struct field info_fields[] = {AT("pid", F_U32, pid),
                                           AT("tag", F_TEXT, tag),
                                           AT("config.cmd", F_TEXT, cmd),
                                           AT("config.cwd", F_TEXT, cwd),
                                           AT("config.args", F_TEXTS, args),
                                           {"config.envs", F_PAIRS, offsetof(struct cloche_process_info, envs),
                                            offsetof(struct cloche_process_info, env_count), NULL},
                                           {0}};
static const struct model info_model = {sizeof(struct cloche_process_info), info_fields, "processes"};

enum cloche_code cloche_processes(struct cloche_box *box, struct cloche_process_list **list,
                                  const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = op_begin(box->client, box, call, OP_CONTROL, error);
  if (!op)
    return op_not_begun(call);
  req_rpc(op, "/process.Process/List", false, NULL);
  buf_puts(&op->body, "{}");
  op->on_reply = reply_list;
  op->model = &info_model;
  op->out = list;
  return op_go(op, error);
}
