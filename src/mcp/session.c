/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - sessions and their calls.
 *
 * A call is a chain of steps, each one operation of libcloche; the operation's end leads to the next step or, when it
 * failed, to the answer. A call that needs the session's own sandbox waits while that is being found or made: two calls
 * at once never make two. An operation that finds the sandbox ended drops it, so that the next call makes another, and
 * says so: state is never replaced silently. */
#include "mcp/session.h"

#include <stdarg.h>

#define MESSAGE_MAX   ((size_t)64 << 20)
#define TREE_ROOM     ((size_t)256 << 10) /* what is read of a message takes so much, */
#define TREE_TIMES    4                   /* and so many times its bytes: texts are copied, long lists are refused */
#define TELL_EVERY_US 100000              /* progress of one call */
#define UNSAID_MAX    16384
#define SESSION_KEY   "cloche-mcp-session"
#define NAME_KEY      "cloche-mcp-name"

const struct mcp_limits mcp_limits_default = {
    .boxes = 8, .calls = 8, .text_max = (size_t)64 << 10, .result_max = (size_t)640 << 10, .timeout_s = 3600};

/* ---- the client's events on the loop ---- */

static void drive(struct mcp_session *s)
{
  cloche_drive(s->client);
  session_kick(s);
}

static void on_ready(uv_poll_t *p, int status, int events)
{
  drive(p->data);
}

static void on_time(uv_timer_t *t)
{
  drive(t->data);
}

void session_kick(struct mcp_session *s)
{
  if (s->ending) /* the timer is for closing it */
    return;
  int ms = cloche_timeout(s->client);
  if (ms >= 0)
    uv_timer_start(&s->timer, on_time, (uint64_t)ms, 0);
  else
    uv_timer_stop(&s->timer);
}

/* ---- sandboxes of a session ---- */

struct mcp_box *session_keep_box(struct mcp_session *s, struct cloche_box *handle)
{
  struct mcp_box *b = xcalloc(1, sizeof(*b));
  const char *id = cloche_box_id(handle);
  session_drop_box(s, id);
  b->handle = handle;
  b->renewed_us = clock_mono_us();
  map_put(&s->boxes, str_of(id), b);
  return b;
}

static bool box_in_use(const struct mcp_session *s, const struct mcp_box *b)
{
  for (size_t i = 0; i < s->calls.n; i++)
    if (s->calls.p[i]->box == b)
      return true;
  return false;
}

static void box_free(struct mcp_box *b)
{
  cloche_box_free(b->handle);
  free(b);
}

void session_drop_box(struct mcp_session *s, const char *id)
{
  struct mcp_box *b = map_del(&s->boxes, str_of(id));
  if (!b)
    return;
  if (s->box == b)
    s->box = NULL;
  for (size_t i = 0; i < s->calls.n; i++) /* those are on their way to an error, and have its id */
    if (s->calls.p[i]->box == b)
      s->calls.p[i]->box = NULL;
  box_free(b);
}

void session_use_box(struct mcp_session *s, struct mcp_box *box)
{
  s->box = box;
}

/* A handle is a name and a few tokens: the oldest that nobody uses makes room. */
static void make_room(struct mcp_session *s)
{
  struct mcp_box *oldest = NULL;
  void *value;
  if (s->boxes.n < MCP_HANDLES_MAX)
    return;
  for (size_t i = 0; map_next(&s->boxes, &i, NULL, &value);) {
    struct mcp_box *b = value;
    if (b != s->box && !box_in_use(s, b) && (!oldest || b->renewed_us < oldest->renewed_us))
      oldest = b;
  }
  if (oldest)
    session_drop_box(s, cloche_box_id(oldest->handle));
}

/* ---- answers ---- */

void mcp_error_add(struct buf *b, struct str id, int code, const char *message)
{
  struct jw w = JW(b);
  jw_open(&w, '{');
  jw_key(&w, "jsonrpc");
  jw_z(&w, "2.0");
  jw_key(&w, "id");
  jw_raw(&w, id.n ? id : STR("null"));
  jw_key(&w, "error");
  jw_open(&w, '{');
  jw_key(&w, "code");
  jw_int(&w, code);
  jw_key(&w, "message");
  jw_z(&w, message);
  jw_close(&w, '}');
  jw_close(&w, '}');
}

static void call_free(struct mcp_call *c)
{
  struct mcp_session *s = c->session;
  for (size_t i = 0; i < s->calls.n; i++)
    if (s->calls.p[i] == c) {
      vec_remove(&s->calls, i);
      break;
    }
  for (size_t i = 0; i < s->waiting.n; i++)
    if (s->waiting.p[i] == c) {
      vec_remove(&s->waiting, i);
      break;
    }
  cloche_op_free(c->op);
  cloche_free(c->result);
  cloche_box_free(c->arriving);
  cloche_recipe_free(c->recipe);
  if (c->slot)
    *c->slot = NULL;
  free(c->box_id);
  buf_free(&c->unsaid);
  result_free(&c->out);
  arena_free(&c->arena);
  free(c);
}

static void call_last(struct mcp_call *c, struct str message)
{
  mcp_message_fn fn = c->fn;
  void *arg = c->arg;
  c->answered = true;
  c->fn = NULL;
  if (fn)
    fn(message, true, arg);
  call_free(c);
}

void call_answer(struct mcp_call *c, struct str result)
{
  cleanup_buf struct buf b = BUF_INIT(MESSAGE_MAX);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "jsonrpc");
  jw_z(&w, "2.0");
  jw_key(&w, "id");
  jw_raw(&w, c->id);
  jw_key(&w, "result");
  jw_raw(&w, result);
  jw_close(&w, '}');
  call_last(c, buf_str(&b));
}

void call_refuse(struct mcp_call *c, int code, const char *fmt, ...)
{
  cleanup_buf struct buf text = BUF_INIT(8192), b = BUF_INIT(1 << 16);
  va_list ap;
  va_start(ap, fmt);
  buf_vaddf(&text, fmt, ap);
  va_end(ap);
  mcp_error_add(&b, c->id, code, buf_z(&text));
  call_last(c, buf_str(&b));
}

void call_tool_done(struct mcp_call *c)
{
  cleanup_buf struct buf b = BUF_INIT(MESSAGE_MAX);
  result_write(&c->out, &b);
  call_answer(c, buf_str(&b));
}

void call_tool_failed(struct mcp_call *c, const char *fmt, ...)
{
  cleanup_buf struct buf text = BUF_INIT(1 << 16);
  va_list ap;
  va_start(ap, fmt);
  buf_vaddf(&text, fmt, ap);
  va_end(ap);
  result_free(&c->out);
  result_begin(&c->out, c->session->options.limits.text_max, 0);
  c->out.failed = true;
  result_text(&c->out, buf_str(&text));
  call_tool_done(c);
}

/* ---- progress ---- */

static void progress_send(struct mcp_call *c)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 18);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "jsonrpc");
  jw_z(&w, "2.0");
  jw_key(&w, "method");
  jw_z(&w, "notifications/progress");
  jw_key(&w, "params");
  jw_open(&w, '{');
  jw_key(&w, "progressToken");
  jw_raw(&w, c->progress_token);
  jw_key(&w, "progress");
  jw_uint(&w, ++c->progress);
  jw_key(&w, "message");
  jw_str(&w, buf_str(&c->unsaid));
  jw_close(&w, '}');
  jw_close(&w, '}');
  c->told_us = clock_mono_us();
  buf_clear(&c->unsaid);
  c->fn(buf_str(&b), false, c->arg);
}

/* What comes in quick succession is told together, the end of it when there is too much. */
void call_progress(struct mcp_call *c, struct str text)
{
  if (!c->fn || !c->progress_token.n)
    return;
  if (text.n > UNSAID_MAX)
    text = str_skip(text, text.n - UNSAID_MAX);
  if (c->unsaid.n + text.n > UNSAID_MAX)
    buf_drop(&c->unsaid, MIN(c->unsaid.n, c->unsaid.n + text.n - UNSAID_MAX));
  buf_adds(&c->unsaid, text);
  if (clock_mono_us() - c->told_us >= TELL_EVERY_US)
    progress_send(c);
}

/* ---- steps ---- */

static struct cloche_op *op_new(struct mcp_session *s, cloche_done_fn *done, void *user)
{
  struct cloche_op *op = cloche_op_new(s->client, done, user);
  if (!op) {
    log_error("out of memory");
    abort();
  }
  return op;
}

/* An ended sandbox is forgotten by its session; the message says what happens next. */
static void step_failed(struct mcp_call *c, const struct cloche_error *e)
{
  const char *message = e->message ? e->message : cloche_code_name(e->code);
  bool own = c->box && c->box == c->session->box;
  if (!c->tool) {
    call_refuse(c, e->code == CLOCHE_ENOTFOUND ? -32002 : -32603, "%s", message);
    return;
  }
  if (e->code == CLOCHE_EGONE && c->box_id)
    session_drop_box(c->session, c->box_id);
  if (e->code == CLOCHE_EGONE)
    call_tool_failed(c, "%s%s%s%s", message, e->cause ? " Cause: " : "", e->cause ? e->cause : "",
                     own ? " Its state is lost; the next call starts a new sandbox." : "");
  else if (e->code == CLOCHE_ETIMEOUT)
    call_tool_failed(c, "%s. What ran was stopped; give a longer 'timeout' if it needs more.", message);
  else
    call_tool_failed(c, "%s", message);
}

static void op_ended(struct cloche_op *op, const struct cloche_error *error, void *user)
{
  struct mcp_call *c = user;
  mcp_step next = c->next;
  c->op = NULL;
  c->next = NULL;
  if (error)
    step_failed(c, error); /* `error` is the op's */
  else
    next(c);
  cloche_op_free(op);
}

struct cloche_call call_begin_for(struct mcp_call *c, mcp_step next, unsigned seconds)
{
  c->next = next;
  c->op = op_new(c->session, op_ended, c);
  return (struct cloche_call){.size = sizeof(struct cloche_call), .op = c->op, .timeout_ms = (long)seconds * 1000};
}

struct cloche_call call_begin(struct mcp_call *c, mcp_step next)
{
  return call_begin_for(c, next, 0);
}

void call_go(struct mcp_call *c, enum cloche_code code, struct cloche_error *error)
{
  if (code == CLOCHE_OK)
    return;
  cloche_op_free(steal(&c->op));
  c->next = NULL;
  step_failed(c, error);
  cloche_error_clear(error);
}

/* ---- the sandbox of a call ---- */

static void renewed(struct cloche_op *op, const struct cloche_error *error, void *user)
{
  cloche_op_free(op);
}

/* A sandbox that is used does not end meanwhile; once per third of its time is often enough. */
static void renew(struct mcp_session *s, struct mcp_box *b)
{
  int64_t now = clock_mono_us();
  if (now - b->renewed_us < (int64_t)s->options.idle_s * 1000000 / 3)
    return;
  b->renewed_us = now;
  struct cloche_op *op = op_new(s, renewed, NULL);
  if (cloche_set_timeout(s->client, cloche_box_id(b->handle), (int)s->options.idle_s,
                         CLOCHE_WITH(cloche_call, .op = op), NULL))
    cloche_op_free(op);
}

static void box_ready(struct mcp_call *c, struct mcp_box *b, mcp_step next)
{
  c->box = b;
  free(c->box_id);
  c->box_id = xstrdup(cloche_box_id(b->handle));
  if (b == c->session->box)
    renew(c->session, b);
  next(c);
}

/* Those that waited, with the session's sandbox or with the reason why there is none. */
static void waiting_go_on(struct mcp_session *s, const struct cloche_error *error)
{
  VEC(struct mcp_call *) waiting = {s->waiting.p, s->waiting.n, s->waiting.cap};
  s->waiting.p = NULL;
  s->waiting.n = s->waiting.cap = 0;
  for (size_t i = 0; i < waiting.n; i++) {
    struct mcp_call *c = waiting.p[i];
    mcp_step next = c->next;
    c->next = NULL;
    if (error)
      step_failed(c, error);
    else
      box_ready(c, s->box, next);
  }
  vec_free(&waiting);
}

/* Of an operation for the session's own sandbox that could not begin. */
static void own_go(struct mcp_session *s, enum cloche_code code, struct cloche_error *error)
{
  if (code == CLOCHE_OK)
    return;
  cloche_op_free(steal(&s->finding));
  waiting_go_on(s, error);
  cloche_error_clear(error);
}

static void own_arrived(struct cloche_op *op, const struct cloche_error *error, void *user)
{
  struct mcp_session *s = user;
  s->finding = NULL;
  cloche_free(steal(&s->found));
  if (!error)
    session_use_box(s, session_keep_box(s, steal(&s->arriving)));
  waiting_go_on(s, error);
  cloche_op_free(op);
  session_kick(s);
}

size_t session_marks(const struct mcp_session *s, struct cloche_pair *out)
{
  out[0] = (struct cloche_pair){SESSION_KEY, s->id};
  out[1] = (struct cloche_pair){NAME_KEY, s->name};
  return s->name[0] ? 2 : 1;
}

static void make_own(struct mcp_session *s)
{
  const struct mcp_options *o = &s->options;
  bool pause = o->end == MCP_END_PAUSE;
  struct cloche_pair metadata[2];
  size_t marks = session_marks(s, metadata);
  if (s->made >= o->limits.boxes) {
    struct cloche_error e = {.code = CLOCHE_ELIMIT,
                             .message = (char *)"this session has made as many sandboxes as it "
                                                "may; work in one of them (list_sandboxes)"};
    waiting_go_on(s, &e);
    return;
  }
  s->made++;
  struct cloche_error e = {0};
  s->finding = op_new(s, own_arrived, s);
  own_go(s,
         cloche_create(s->client,
                       CLOCHE_WITH(cloche_create, .template_id = s->template_id[0] ? s->template_id : NULL,
                                   .timeout_s = (int)o->idle_s, .metadata = metadata, .metadata_count = marks,
                                   .pause_on_timeout = pause, .resume_on_traffic = pause),
                       &s->arriving, CLOCHE_WITH(cloche_call, .op = s->finding), &e),
         &e);
}

static void own_found(struct cloche_op *op, const struct cloche_error *error, void *user)
{
  struct mcp_session *s = user;
  s->finding = NULL;
  cloche_op_free(op);
  s->looked = !error;
  if (error) {
    waiting_go_on(s, error);
  } else if (s->found->count) {
    struct cloche_error e = {0};
    s->finding = op_new(s, own_arrived, s);
    own_go(s,
           cloche_connect(s->client, s->found->items[0].id,
                          CLOCHE_WITH(cloche_connect, .timeout_s = (int)s->options.idle_s), &s->arriving,
                          CLOCHE_WITH(cloche_call, .op = s->finding), &e),
           &e);
  } else {
    cloche_free(steal(&s->found));
    make_own(s);
  }
  session_kick(s);
}

static void find_own(struct mcp_session *s)
{
  struct cloche_pair wanted = {s->name[0] ? NAME_KEY : SESSION_KEY, s->name[0] ? s->name : s->id};
  if (s->looked) {
    make_own(s);
    return;
  }
  struct cloche_error e = {0};
  s->finding = op_new(s, own_found, s);
  own_go(s,
         cloche_list(s->client, CLOCHE_WITH(cloche_list, .metadata = &wanted, .metadata_count = 1, .limit = 1),
                     &s->found, CLOCHE_WITH(cloche_call, .op = s->finding), &e),
         &e);
}

static void named_arrived(struct mcp_call *c)
{
  mcp_step next = c->then;
  c->then = NULL;
  make_room(c->session);
  box_ready(c, session_keep_box(c->session, steal(&c->arriving)), next);
}

void call_with_box(struct mcp_call *c, mcp_step next)
{
  struct mcp_session *s = c->session;
  const char *id;
  if (!arg_text(c, "sandbox", false, &id))
    return;
  struct mcp_box *known = id ? map_get(&s->boxes, str_of(id)) : s->box;
  if (known) {
    box_ready(c, known, next);
  } else if (id) {
    c->then = next;
    c->box_id = xstrdup(id);
    struct cloche_error e = {0};
    struct cloche_call call = call_begin(c, named_arrived);
    call_go(c,
            cloche_connect(s->client, id, CLOCHE_WITH(cloche_connect, .timeout_s = (int)s->options.idle_s),
                           &c->arriving, &call, &e),
            &e);
  } else {
    c->next = next;
    vec_push(&s->waiting, c);
    if (!s->finding)
      find_own(s);
  }
}

/* ---- messages ---- */

static int message_error(int *code, int value, struct err *err, const char *text)
{
  *code = value;
  return err_set(err, -EINVAL, "%s", text);
}

static struct mcp_call *call_new(struct mcp_session *s, size_t bytes, mcp_message_fn fn, void *arg)
{
  struct mcp_call *c = xcalloc(1, sizeof(*c));
  c->session = s;
  c->arena = ARENA_INIT(TREE_ROOM + TREE_TIMES * bytes);
  c->unsaid = BUF_INIT(2 * UNSAID_MAX);
  c->fn = fn;
  c->arg = arg;
  result_begin(&c->out, s->options.limits.text_max, s->options.limits.result_max);
  vec_push(&s->calls, c);
  return c;
}

static struct str raw(struct arena *a, const struct json *v)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  if (!json_is(v, JSON_STRING) && !json_is(v, JSON_NUMBER))
    return STR_NONE;
  json_put(&b, v, false);
  return buf_failed(&b) ? STR_NONE : arena_str(a, buf_str(&b));
}

static void cancelled(struct mcp_session *s, struct str id)
{
  for (size_t i = 0; id.n && i < s->calls.n; i++)
    if (str_eq(s->calls.p[i]->id, id)) {
      call_last(s->calls.p[i], STR_NONE); /* no response, but who carries the request is done with it */
      return;
    }
}

static void notified(struct mcp_session *s, struct mcp_call *c, struct str method)
{
  if (str_is(method, "notifications/cancelled"))
    cancelled(s, raw(&c->arena, json_get(c->params, "requestId")));
}

int mcp_session_take(struct mcp_session *s, struct str text, mcp_message_fn fn, void *arg, struct mcp_call **call,
                     int *code, struct err *err)
{
  struct json_error why;
  struct mcp_call *c = call_new(s, text.n, fn, arg);
  struct json *m = json_read(&c->arena, text, JSON_REPAIR_UTF8, &why);
  struct str method = json_text(json_get(m, "method"), STR_NONE);
  if (call)
    *call = NULL;
  c->id = raw(&c->arena, json_get(m, "id"));
  c->params = json_get(m, "params");
  c->progress_token = raw(&c->arena, json_get(json_get(c->params, "_meta"), "progressToken"));
  if (!m || m->type != JSON_OBJECT || !method.p || !c->id.n) {
    bool answer = m && json_get(m, "id") && (json_get(m, "result") || json_get(m, "error"));
    if (method.p && !json_get(m, "id"))
      notified(s, c, method);
    bool none = !m, batch = json_is(m, JSON_ARRAY); /* the message is the call's */
    c->fn = NULL;
    call_free(c);
    if (none)
      return message_error(code, MCP_PARSE_ERROR, err, "the message is not JSON, or has too many values for its size");
    if (batch)
      return message_error(code, MCP_INVALID_REQUEST, err, "batches are not taken: send one message at a time");
    return method.p || answer ? 0 : message_error(code, MCP_INVALID_REQUEST, err, "the message is not JSON-RPC 2.0");
  }
  c->slot = call;
  if (call)
    *call = c;
  if (s->calls.n > s->options.limits.calls)
    call_refuse(c, MCP_INVALID_REQUEST, "this session has %u calls under way, as many as it may: wait for one to end",
                s->options.limits.calls);
  else
    method_call(c, method);
  session_kick(s);
  return 0;
}

void mcp_call_leave(struct mcp_call *c)
{
  c->fn = NULL;
  call_free(c);
}

size_t mcp_session_calls(const struct mcp_session *s)
{
  return s->calls.n;
}

/* ---- beginning and end ---- */

static char *text_or_empty(struct str s)
{
  return xstrndup(s.p ? s.p : "", s.n);
}

struct mcp_session *mcp_session_new(uv_loop_t *loop, const struct cloche_config *config,
                                    const struct mcp_options *options, struct err *err)
{
  struct cloche_error e = {0};
  struct mcp_session *s = xcalloc(1, sizeof(*s));
  if (cloche_open(config, &s->client, &e)) {
    err_set(err, -EINVAL, "%s", e.message ? e.message : cloche_code_name(e.code));
    cloche_error_clear(&e);
    free(s);
    return NULL;
  }
  s->loop = loop;
  s->options = *options;
  s->id = text_or_empty(options->id);
  s->name = text_or_empty(options->name);
  s->template_id = text_or_empty(options->template_id);
  if (s->options.end == MCP_END_DEFAULT)
    s->options.end = s->name[0] ? MCP_END_PAUSE : MCP_END_KILL;
  s->looked = !s->name[0] && !options->resumed;
  uv_poll_init(loop, &s->poll, cloche_fd(s->client));
  uv_timer_init(loop, &s->timer);
  s->poll.data = s->timer.data = s;
  uv_poll_start(&s->poll, UV_READABLE, on_ready);
  return s;
}

static void handle_closed(uv_handle_t *h)
{
  struct mcp_session *s = h->data;
  if (--s->closing)
    return;
  if (s->ended)
    s->ended(s->ended_arg);
  free(s->id);
  free(s->name);
  free(s->template_id);
  free(s);
}

static void session_close(struct mcp_session *s)
{
  void *value;
  for (size_t i = 0; map_next(&s->boxes, &i, NULL, &value);)
    box_free(value);
  map_free(&s->boxes);
  cloche_op_free(s->finding);
  cloche_box_free(s->arriving);
  cloche_free(s->found);
  uv_poll_stop(&s->poll);
  s->closing = 2;
  s->ending = true;
  uv_close((uv_handle_t *)&s->poll, handle_closed);
  uv_close((uv_handle_t *)&s->timer, handle_closed);
  cloche_close(s->client);
  vec_free(&s->calls);
  vec_free(&s->waiting);
}

static void calls_end(struct mcp_session *s)
{
  while (s->calls.n)
    call_refuse(s->calls.p[0], -32000, "the session has ended");
}

/* Inside a callback of the client it can't be closed; the timer comes after it. */
static void close_now(uv_timer_t *t)
{
  session_close(t->data);
}

static void own_over(struct cloche_op *op, const struct cloche_error *error, void *user)
{
  struct mcp_session *s = user;
  if (error && error->code != CLOCHE_ENOTFOUND && error->code != CLOCHE_EGONE)
    log_warn("the sandbox of an ended session was left to its timeout: %s", error->message ? error->message : "?");
  cloche_op_free(op);
  s->finding = NULL;
  s->ending = true;
  uv_timer_start(&s->timer, close_now, 0, 0);
}

void mcp_session_leave(struct mcp_session *s, void (*ended)(void *arg), void *arg)
{
  s->ended = ended;
  s->ended_arg = arg;
  calls_end(s);
  session_close(s);
}

void mcp_session_end(struct mcp_session *s, void (*ended)(void *arg), void *arg)
{
  s->ended = ended;
  s->ended_arg = arg;
  calls_end(s);
  cloche_op_free(steal(&s->finding));
  if (!s->box) {
    session_close(s);
    return;
  }
  const char *id = cloche_box_id(s->box->handle);
  s->finding = op_new(s, own_over, s);
  const struct cloche_call *call = CLOCHE_WITH(cloche_call, .op = s->finding);
  enum cloche_code code = s->options.end == MCP_END_PAUSE ? cloche_pause(s->client, id, NULL, NULL, call, NULL)
                                                          : cloche_kill(s->client, id, NULL, call, NULL);
  if (code)
    session_close(s);
  else
    session_kick(s);
}
