/* SPDX-License-Identifier: Apache-2.0 */
/* Running code: lines of JSON from the interpreter become callbacks and an execution. Contexts, interrupts. */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

struct cell {
  struct cloche_run o;
  struct cloche_execution *execution;
  struct node *first, *last; /* events that are kept, in their order */
  bool told, ended;
  size_t scanned; /* bytes of the buffer without a line end */
};

/* What is kept of an event until the arrays of the execution are made. */
struct node {
  struct node *next;
  enum { NODE_OUT, NODE_ERR, NODE_RESULT } what;
  struct cloche_text text;
  struct cloche_result result;
};

static void cell_free(void *state)
{
  struct cell *cell = state;
  cloche_free(cell->execution);
}

static const struct {
  const char *key;
  size_t offset;
} formats[] = {{"text", offsetof(struct cloche_result, text)},
               {"html", offsetof(struct cloche_result, html)},
               {"markdown", offsetof(struct cloche_result, markdown)},
               {"svg", offsetof(struct cloche_result, svg)},
               {"png", offsetof(struct cloche_result, png)},
               {"jpeg", offsetof(struct cloche_result, jpeg)},
               {"pdf", offsetof(struct cloche_result, pdf)},
               {"latex", offsetof(struct cloche_result, latex)},
               {"javascript", offsetof(struct cloche_result, javascript)}};
static const struct {
  const char *key;
  size_t offset;
} json_formats[] = {{"json", offsetof(struct cloche_result, json)},
                    {"data", offsetof(struct cloche_result, data)},
                    {"chart", offsetof(struct cloche_result, chart_json)},
                    {"extra", offsetof(struct cloche_result, extra)}};

static bool read_result(struct arena *a, const struct json *j, struct cloche_result *r)
{
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
    *(const char **)(void *)((char *)r + formats[i].offset) = json_text(j, formats[i].key);
  for (size_t i = 0; i < sizeof json_formats / sizeof json_formats[0]; i++) {
    const struct json *v = json_get(j, json_formats[i].key);
    const char *raw = model_raw(a, v);
    if (v && !raw)
      return false;
    *(const char **)(void *)((char *)r + json_formats[i].offset) = raw;
  }
  const struct json *main = json_get(j, "is_main_result"), *chart = json_get(j, "chart");
  r->is_main = main && main->type == JSON_TRUE;
  r->raw = model_raw(a, j);
  bool no_memory = false;
  if (chart && chart->type == JSON_OBJECT && chart->len)
    r->chart = chart_read(a, chart, &no_memory);
  return r->raw && !no_memory;
}

static const char *text_or_empty(const struct json *j, const char *key)
{
  const char *text = json_text(j, key);
  return text ? text : "";
}

static enum cloche_code canceled(struct cloche_op *op, int said)
{
  return said ? op_fail(op, CLOCHE_ECANCELED, "canceled by a callback") : CLOCHE_OK;
}

static void keep(struct cell *cell, struct node *node)
{
  if (cell->last)
    cell->last->next = node;
  else
    cell->first = node;
  cell->last = node;
}

static enum cloche_code on_output(struct cloche_op *op, struct cell *cell, struct arena *a, const struct json *j,
                                  bool is_error)
{
  const struct json *text = json_get(j, "text");
  struct node *node = arena_alloc(a, sizeof *node);
  if (!node)
    return CLOCHE_ENOMEM;
  node->what = is_error ? NODE_ERR : NODE_OUT;
  node->text = (struct cloche_text){"", 0, json_text(j, "timestamp")};
  if (text && text->type == JSON_STRING)
    node->text.data = text->text, node->text.len = text->len;
  if (!cell->o.no_retain)
    keep(cell, node);
  cloche_text_fn *tell = is_error ? cell->o.on_stderr : cell->o.on_stdout;
  return tell ? canceled(op, tell(&node->text, cell->o.user)) : CLOCHE_OK;
}

static enum cloche_code on_result(struct cloche_op *op, struct cell *cell, struct arena *a, const struct json *j)
{
  struct node *node = arena_alloc(a, sizeof *node);
  if (!node || !read_result(a, j, &node->result))
    return CLOCHE_ENOMEM;
  node->what = NODE_RESULT;
  if (!cell->o.no_retain)
    keep(cell, node);
  return cell->o.on_result ? canceled(op, cell->o.on_result(&node->result, cell->o.user)) : CLOCHE_OK;
}

static enum cloche_code on_code_error(struct cloche_op *op, struct cell *cell, const struct json *j)
{
  struct arena *own = result_arena(cell->execution);
  struct cloche_code_error *e = arena_alloc(own, sizeof *e);
  if (!e)
    return CLOCHE_ENOMEM;
  const char *texts[3] = {text_or_empty(j, "name"), text_or_empty(j, "value"), text_or_empty(j, "traceback")};
  for (int i = 0; i < 3; i++)
    if (!(texts[i] = arena_text(own, texts[i], strlen(texts[i]))))
      return CLOCHE_ENOMEM;
  *e = (struct cloche_code_error){texts[0], texts[1], texts[2]};
  cell->execution->error = e;
  return cell->o.on_error ? canceled(op, cell->o.on_error(e, cell->o.user)) : CLOCHE_OK;
}

static enum cloche_code on_event(struct cloche_op *op, struct arena *a, const struct json *j)
{
  struct cell *cell = op->state;
  const char *type = text_or_empty(j, "type");
  if (strcmp(type, "stdout") == 0 || strcmp(type, "stderr") == 0)
    return on_output(op, cell, a, j, type[3] == 'e');
  if (strcmp(type, "result") == 0)
    return on_result(op, cell, a, j);
  if (strcmp(type, "error") == 0)
    return on_code_error(op, cell, j);
  if (strcmp(type, "number_of_executions") == 0)
    cell->execution->execution_count = json_int(json_get(j, "execution_count"), 0);
  if (strcmp(type, "end_of_execution") == 0)
    cell->ended = true;
  return CLOCHE_OK;
}

/* Kept events live in the execution's memory, others only until their callback is done. */
static enum cloche_code on_line(struct cloche_op *op, const char *line, size_t len)
{
  struct cell *cell = op->state;
  struct arena passing = {0};
  struct arena *a = cell->o.no_retain ? &passing : result_arena(cell->execution);
  bool no_memory = false;
  struct json *j = json_read(a, line, len, &no_memory);
  enum cloche_code code = CLOCHE_OK;
  if (j)
    code = on_event(op, a, j);
  else
    code = no_memory ? CLOCHE_ENOMEM : op_fail(op, CLOCHE_EPROTO, "a line of the interpreter is no JSON");
  if (code == CLOCHE_ENOMEM && a->full)
    code = op_fail(op, CLOCHE_EPROTO, "output and results take more than %zu bytes", a->max);
  arena_free(&passing);
  return code;
}

static enum cloche_code tell_start(struct cloche_op *op, struct cell *cell)
{
  cell->told = true;
  if (!op->execution_id[0])
    return CLOCHE_OK;
  struct arena *a = result_arena(cell->execution);
  if (!(cell->execution->execution_id = arena_text(a, op->execution_id, strlen(op->execution_id))))
    return CLOCHE_ENOMEM;
  return cell->o.on_start ? canceled(op, cell->o.on_start(cell->execution->execution_id, cell->o.user)) : CLOCHE_OK;
}

static enum cloche_code on_lines(struct cloche_op *op)
{
  struct cell *cell = op->state;
  enum cloche_code code = cell->told ? CLOCHE_OK : tell_start(op, cell);
  size_t at = 0;
  while (code == CLOCHE_OK && !op->cancel_pending && !op->free_pending) {
    size_t from = at > cell->scanned ? at : cell->scanned;
    const char *end = memchr(op->in.data + from, '\n', op->in.len - from);
    if (!end)
      break;
    size_t len = (size_t)(end - op->in.data) - at;
    if (len)
      code = on_line(op, op->in.data + at, len);
    at += len + 1;
  }
  buf_cut(&op->in, at);
  cell->scanned = op->in.len;
  return code;
}

static bool make_arrays(struct cell *cell)
{
  struct cloche_execution *e = cell->execution;
  struct arena *a = result_arena(e);
  size_t n[3] = {0};
  for (struct node *node = cell->first; node; node = node->next)
    n[node->what]++;
  struct cloche_text *out = arena_array(a, n[NODE_OUT], sizeof *out), *err = arena_array(a, n[NODE_ERR], sizeof *err);
  struct cloche_result *results = arena_array(a, n[NODE_RESULT], sizeof *results);
  if (!out || !err || !results)
    return false;
  for (struct node *node = cell->first; node; node = node->next) {
    if (node->what == NODE_OUT)
      out[e->out_count++] = node->text;
    else if (node->what == NODE_ERR)
      err[e->err_count++] = node->text;
    else
      results[e->result_count++] = node->result;
  }
  e->out = out;
  e->err = err;
  e->results = results;
  for (size_t i = 0; i < e->result_count && !e->text; i++)
    if (results[i].is_main)
      e->text = results[i].text;
  return true;
}

static enum cloche_code reply_cell(struct cloche_op *op)
{
  struct cell *cell = op->state;
  if (!reply_good(op))
    return reply_failed(op);
  enum cloche_code code = op->in.len ? on_line(op, op->in.data, op->in.len) : CLOCHE_OK;
  if (code == CLOCHE_OK && !cell->ended)
    code = op_fail(op, CLOCHE_ENET, "the run ended without its last line");
  if (code == CLOCHE_OK && !make_arrays(cell))
    code = CLOCHE_ENOMEM;
  if (code != CLOCHE_OK)
    return code;
  void *execution = cell->execution;
  cell->execution = NULL;
  return answer(op, execution);
}

static void put_member(struct buf *b, const char *name, const char *value)
{
  if (!value)
    return;
  if (!b->failed && b->len && b->data[b->len - 1] != '{')
    buf_puts(b, ",");
  buf_json(b, name);
  buf_puts(b, ":");
  buf_json(b, value);
}

enum cloche_code cloche_run_code(struct cloche_box *box, const char *code, const struct cloche_run *options,
                                 struct cloche_execution **execution, const struct cloche_call *call,
                                 struct cloche_error *error)
{
  OPTIONS(cloche_run, o, options);
  if (o.language && o.context_id)
    return error_set(error, CLOCHE_EINVAL, "a language and a context can't both be given");
  if (!code)
    return error_set(error, CLOCHE_EINVAL, "no code");
  if (execution)
    *execution = NULL;
  struct cloche_op *op = op_begin(box->client, box, call, OP_CELL, error);
  if (!op)
    return op_not_begun(call);
  req_box(op, INTERPRETER_PORT, "POST", "/execute");
  req_json(op);
  buf_puts(&op->body, "{");
  put_member(&op->body, "code", code);
  put_member(&op->body, "language", o.language);
  put_member(&op->body, "context_id", o.context_id);
  if (o.env_count)
    buf_puts(&op->body, ",\"env_vars\":"), put_pairs(&op->body, o.envs, o.env_count);
  buf_puts(&op->body, "}");
  op->streaming = true;
  op->on_data = on_lines;
  op->on_reply = reply_cell;
  op->out = execution;
  if (op_state(op, sizeof(struct cell), cell_free)) {
    struct cell *cell = op->state;
    cell->o = o;
    cell->execution = result_new(sizeof *cell->execution);
    if (!cell->execution)
      op->failed = CLOCHE_ENOMEM;
    else
      result_arena(cell->execution)->max = box->client->max_answer;
  }
  return op_go(op, error);
}

enum cloche_code cloche_decode(const char *base64, struct cloche_text **bytes, struct cloche_error *error)
{
  size_t len = strlen(base64);
  struct cloche_text *text = result_new(sizeof *text);
  unsigned char *data = text ? arena_alloc(result_arena(text), len / 4 * 3 + 4) : NULL;
  *bytes = NULL;
  if (!data) {
    cloche_free(text);
    return op_no_memory(error);
  }
  long n = base64_decode(base64, len, data);
  if (n < 0) {
    cloche_free(text);
    return error_set(error, CLOCHE_EINVAL, "this is no base64");
  }
  data[n] = 0;
  *text = (struct cloche_text){(char *)data, (size_t)n, NULL};
  *bytes = text;
  return CLOCHE_OK;
}

#define AT(key, member)                                                                                                \
  {                                                                                                                    \
    key, F_TEXT, offsetof(struct cloche_context, member), 0, NULL                                                      \
  }
static const struct field context_fields[] = {AT("id", id), AT("language", language), AT("cwd", cwd), {0}};
static const struct model context_model = {sizeof(struct cloche_context), context_fields, NULL};

enum cloche_code cloche_context_create(struct cloche_box *box, const char *language, const char *cwd,
                                       struct cloche_context **context, const struct cloche_call *call,
                                       struct cloche_error *error)
{
  struct cloche_op *op = op_begin(box->client, box, call, OP_CONTROL, error);
  if (!op)
    return op_not_begun(call);
  req_box(op, INTERPRETER_PORT, "POST", "/contexts");
  req_json(op);
  buf_puts(&op->body, "{");
  put_member(&op->body, "language", language);
  put_member(&op->body, "cwd", cwd);
  buf_puts(&op->body, "}");
  op->on_reply = reply_model;
  op->model = &context_model;
  op->out = context;
  return op_go(op, error);
}

enum cloche_code cloche_contexts(struct cloche_box *box, struct cloche_context_list **list,
                                 const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = op_begin(box->client, box, call, OP_CONTROL, error);
  if (!op)
    return op_not_begun(call);
  req_box(op, INTERPRETER_PORT, "GET", "/contexts");
  op->on_reply = reply_list;
  op->model = &context_model;
  op->out = list;
  return op_go(op, error);
}

static enum cloche_code on_context(struct cloche_box *box, const char *method, const char *id, const char *suffix,
                                   const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = op_begin(box->client, box, call, OP_CONTROL, error);
  if (!op)
    return op_not_begun(call);
  req_box(op, INTERPRETER_PORT, method, "/contexts");
  req_segment(op, id);
  req_path(op, suffix);
  req_json(op);
  op->on_reply = reply_ok;
  return op_go(op, error);
}

enum cloche_code cloche_context_restart(struct cloche_box *box, const char *id, const struct cloche_call *call,
                                        struct cloche_error *error)
{
  return on_context(box, "POST", id, "/restart", call, error);
}

enum cloche_code cloche_context_remove(struct cloche_box *box, const char *id, const struct cloche_call *call,
                                       struct cloche_error *error)
{
  return on_context(box, "DELETE", id, "", call, error);
}

static enum cloche_code reply_interrupt(struct cloche_op *op)
{
  if (!reply_good(op))
    return reply_failed(op);
  struct arena a = {0};
  enum cloche_code code = CLOCHE_OK;
  const struct json *v = json_get(reply_json(op, &a, &code), "interrupted");
  if (op->out)
    *(bool *)op->out = v && v->type == JSON_TRUE;
  arena_free(&a);
  return code;
}

enum cloche_code cloche_interrupt(struct cloche_box *box, const struct cloche_interrupt *options, bool *interrupted,
                                  const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_interrupt, o, options);
  struct cloche_op *op = op_begin(box->client, box, call, OP_CONTROL, error);
  if (!op)
    return op_not_begun(call);
  req_box(op, INTERPRETER_PORT, "POST", "/interrupt");
  req_json(op);
  buf_puts(&op->body, "{");
  put_member(&op->body, "context_id", o.context_id);
  put_member(&op->body, "language", o.language);
  put_member(&op->body, "execution_id", o.execution_id);
  buf_puts(&op->body, "}");
  op->on_reply = reply_interrupt;
  op->out = interrupted;
  return op_go(op, error);
}
