/* SPDX-License-Identifier: Apache-2.0 */
/* tool_run.c - run_code and run_command: output as text, pictures as pictures, tables and charts as data. */
#include "mcp/session.h"

#define TIMEOUT_CODE    300
#define TIMEOUT_COMMAND 60

static int on_output(const struct cloche_text *text, void *user)
{
  call_progress(user, str_make(text->data, text->len));
  return 0;
}

static void join(struct buf *out, const struct cloche_text *texts, size_t n)
{
  for (size_t i = 0; i < n; i++)
    buf_add(out, texts[i].data, texts[i].len);
}

/* ---- run_code ---- */

static void add_format(struct jw *w, const char *name, const char *value)
{
  if (value)
    jw_z(w, name);
}

static void add_formats(struct jw *w, const struct cloche_result *r)
{
  jw_key(w, "formats");
  jw_open(w, '[');
  add_format(w, "text", r->text);
  add_format(w, "html", r->html);
  add_format(w, "markdown", r->markdown);
  add_format(w, "svg", r->svg);
  add_format(w, "png", r->png);
  add_format(w, "jpeg", r->jpeg);
  add_format(w, "pdf", r->pdf);
  add_format(w, "latex", r->latex);
  add_format(w, "javascript", r->javascript);
  add_format(w, "json", r->json);
  add_format(w, "data", r->data);
  add_format(w, "chart", r->chart_json);
  jw_close(w, ']');
}

static void show_result(struct mcp_call *c, const struct cloche_result *r)
{
  const char *text = r->markdown ? r->markdown : r->text ? r->text : r->latex ? r->latex : r->html;
  if (r->png)
    result_image(&c->out, "image/png", str_of(r->png));
  else if (r->jpeg)
    result_image(&c->out, "image/jpeg", str_of(r->jpeg));
  if (text)
    result_text(&c->out, str_of(text));
  else if (r->svg)
    result_text(&c->out, str_of(r->svg));
  else if (r->json)
    result_text(&c->out, str_of(r->json));
}

static void put_result(struct mcp_call *c, const struct cloche_result *r)
{
  struct jw *w = &c->out.data;
  jw_open(w, '{');
  jw_key(w, "isMain");
  jw_bool(w, r->is_main);
  if (r->text) {
    cleanup_buf struct buf b = BUF_INIT(c->out.text_max * 2 + 4096);
    text_shorten(&b, str_of(r->text), c->out.text_max);
    jw_key(w, "text");
    jw_str(w, buf_str(&b));
  }
  add_formats(w, r);
  result_put_json(&c->out, w, "json", r->json);
  result_put_json(&c->out, w, "data", r->data);
  result_put_json(&c->out, w, "chart", r->chart_json);
  jw_close(w, '}');
}

static void put_error(struct mcp_call *c, const struct cloche_code_error *e)
{
  struct jw *w = &c->out.data;
  jw_key(w, "error");
  jw_open(w, '{');
  jw_key(w, "name");
  jw_z(w, e->name ? e->name : "");
  jw_key(w, "value");
  jw_z(w, e->value ? e->value : "");
  jw_close(w, '}');
  c->out.failed = true;
  result_text(&c->out, str_of(e->traceback && e->traceback[0] ? e->traceback : e->value));
}

static void ran(struct mcp_call *c)
{
  const struct cloche_execution *e = c->result;
  cleanup_buf struct buf out = BUF_INIT((size_t)64 << 20), err = BUF_INIT((size_t)64 << 20);
  join(&out, e->out, e->out_count);
  join(&err, e->err, e->err_count);
  result_text(&c->out, buf_str(&out));
  result_text(&c->out, buf_str(&err));
  for (size_t i = 0; i < e->result_count; i++)
    show_result(c, &e->results[i]);
  result_put(&c->out, "sandbox", str_of(c->box_id));
  result_put(&c->out, "stdout", buf_str(&out));
  result_put(&c->out, "stderr", buf_str(&err));
  jw_key(&c->out.data, "results");
  jw_open(&c->out.data, '[');
  for (size_t i = 0; i < e->result_count; i++)
    put_result(c, &e->results[i]);
  jw_close(&c->out.data, ']');
  jw_key(&c->out.data, "executionCount");
  jw_int(&c->out.data, e->execution_count);
  if (e->error)
    put_error(c, e->error);
  else if (!out.n && !err.n && !e->result_count)
    result_note(&c->out, "[no output]");
  call_tool_done(c);
}

static void run_code(struct mcp_call *c)
{
  const char *code, *language, *context;
  int64_t timeout;
  if (!arg_text(c, "code", true, &code) || !arg_text(c, "language", false, &language) ||
      !arg_text(c, "context", false, &context) ||
      !arg_int(c, "timeout", 1, c->session->options.limits.timeout_s, TIMEOUT_CODE, &timeout))
    return;
  struct cloche_error e = {0};
  struct cloche_call call = call_begin_for(c, ran, (unsigned)timeout);
  call_go(c,
          cloche_run_code(c->box->handle, code,
                          CLOCHE_WITH(cloche_run, .language = context ? NULL : language, .context_id = context,
                                      .on_stdout = on_output, .on_stderr = on_output, .user = c),
                          (struct cloche_execution **)&c->result, &call, &e),
          &e);
}

void tool_run_code(struct mcp_call *c)
{
  const char *code;
  if (arg_text(c, "code", true, &code))
    call_with_box(c, run_code);
}

/* ---- run_command ---- */

static void command_ended(struct mcp_call *c)
{
  const struct cloche_command_result *r = c->result;
  result_text(&c->out, str_make(r->out.data, r->out.len));
  result_text(&c->out, str_make(r->err.data, r->err.len));
  if (r->exit_code)
    result_note(&c->out, "[%s]", r->status ? r->status : "failed");
  else if (!r->out.len && !r->err.len)
    result_note(&c->out, "[no output]");
  result_put(&c->out, "sandbox", str_of(c->box_id));
  jw_key(&c->out.data, "exitCode");
  jw_int(&c->out.data, r->exit_code);
  result_put(&c->out, "stdout", str_make(r->out.data, r->out.len));
  result_put(&c->out, "stderr", str_make(r->err.data, r->err.len));
  c->out.failed = r->exit_code != 0;
  call_tool_done(c);
}

static void run_command(struct mcp_call *c)
{
  const char *line, *cwd, *user;
  struct cloche_pair *envs;
  size_t n;
  int64_t timeout;
  if (!arg_text(c, "command", true, &line) || !arg_text(c, "cwd", false, &cwd) || !arg_text(c, "user", false, &user) ||
      !arg_pairs(c, "envs", &envs, &n) ||
      !arg_int(c, "timeout", 1, c->session->options.limits.timeout_s, TIMEOUT_COMMAND, &timeout))
    return;
  struct cloche_error e = {0};
  struct cloche_call call = call_begin_for(c, command_ended, (unsigned)timeout);
  call_go(c,
          cloche_command(c->box->handle, line,
                         CLOCHE_WITH(cloche_command, .cwd = cwd, .user_name = user, .envs = envs, .env_count = n,
                                     .on_stdout = on_output, .on_stderr = on_output, .user = c),
                         (struct cloche_command_result **)&c->result, &call, &e),
          &e);
}

void tool_run_command(struct mcp_call *c)
{
  const char *line;
  if (arg_text(c, "command", true, &line))
    call_with_box(c, run_command);
}
