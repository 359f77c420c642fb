/* SPDX-License-Identifier: Apache-2.0 */
/* interp_execute.c - POST /execute: picks the context, then streams what its run says.
 *
 * The head of the answer goes out before the run is queued, but it and the run's number, which tell a client
 * nothing it waits for, stay up to two milliseconds to travel with what follows: a short cell is then one packet and
 * one wake-up for everyone on the way. Otherwise one event is one chunk, sent at once; a keepalive line goes out after
 * five silent seconds, queued or running. A client that leaves takes its run with it: dropped from the queue, or
 * interrupted; one that was cut off, because the box slept, leaves its run to itself. A client that reads slowly holds
 * its own kernel back and nobody else's. */
#include "agent/interpreter/interp_http.h"
#include "agent/interpreter/interp.h"
#include "agent/interpreter/interp_request.h"

struct execution {
  struct run run;
  struct context_wait wait;
  struct interp *in;
  struct http_x *x;
  struct context *context; /* the one waited for */
  struct execution *next, *prev;
  uint64_t written_ms;
  char number[80]; /* the run's first event, while it waits */
  size_t nnumber;
  bool streaming, unopened;
  void (*gone)(void *arg);
  void *arg;
};

static struct execution *of_run(struct run *r)
{
  return (struct execution *)((char *)r - offsetof(struct execution, run));
}

static void streams_remove(struct execution *e)
{
  if (!e->streaming)
    return;
  e->streaming = false;
  if (e->prev)
    e->prev->next = e->next;
  else
    e->in->streams = e->next;
  if (e->next)
    e->next->prev = e->prev;
}

/* One timer for all streams, set to the earliest that falls silent; it stops when none is open. */
static void on_keepalive(uv_timer_t *t)
{
  struct interp *in = t->data;
  uint64_t now = uv_now(in->host.loop), wait = INTERP_KEEPALIVE_MS;
  for (struct execution *e = in->streams, *next; e; e = next) {
    next = e->next;
    uint64_t silent = now - e->written_ms;
    if (silent >= INTERP_KEEPALIVE_MS) {
      e->written_ms = now;
      http_send(e->x, STR("{\"type\":\"keepalive\"}\n"));
    } else {
      wait = MIN(wait, INTERP_KEEPALIVE_MS - silent);
    }
  }
  if (in->streams)
    uv_timer_start(&in->keepalive, on_keepalive, wait, 0);
}

static void streams_add(struct execution *e)
{
  struct interp *in = e->in;
  e->streaming = true;
  e->written_ms = uv_now(in->host.loop);
  e->prev = NULL;
  e->next = in->streams;
  if (e->next)
    e->next->prev = e;
  in->streams = e;
  if (!uv_is_active((uv_handle_t *)&in->keepalive))
    uv_timer_start(&in->keepalive, on_keepalive, INTERP_KEEPALIVE_MS, 0);
}

/* ---- the beginning of an answer ---- */

static void opened(struct execution *e)
{
  if (!e->unopened)
    return;
  e->unopened = false;
  if (--e->in->unopened == 0)
    uv_timer_stop(&e->in->opening);
}

static void execution_open(struct execution *e)
{
  if (!e->unopened)
    return;
  opened(e);
  interp_http_stream(e->x, e->run.id);
  http_send(e->x, str_make(e->number, e->nnumber));
}

static void on_opening(uv_timer_t *t)
{
  struct interp *in = t->data;
  struct net *net = http_gather(in->host.loop);
  for (struct execution *e = in->streams; e; e = e->next)
    execution_open(e);
  http_let_go(net);
}

static void execution_open_soon(struct execution *e)
{
  e->unopened = true;
  if (e->in->unopened++ == 0)
    uv_timer_start(&e->in->opening, on_opening, INTERP_OPEN_MS, 0);
}

/* True when the line may wait with the head. */
static bool hold_number(struct execution *e, struct str line)
{
  if (!e->unopened || e->nnumber || line.n > sizeof(e->number) ||
      !str_starts(line, STR("{\"type\":\"number_of_executions\"")))
    return false;
  memcpy(e->number, line.p, line.n);
  e->nnumber = line.n;
  return true;
}

/* ---- what the run says ---- */

static void on_line(struct run *r, struct str line)
{
  struct execution *e = of_run(r);
  if (hold_number(e, line))
    return;
  execution_open(e);
  e->written_ms = uv_now(e->in->host.loop);
  http_send(e->x, line);
  if (http_congested(e->x))
    run_pause(r);
}

static void on_end(struct run *r)
{
  struct execution *e = of_run(r);
  streams_remove(e);
  execution_open(e);
  http_send(e->x, STR("{\"type\":\"end_of_execution\"}\n"));
  http_end(e->x);
}

static const struct run_ops run_ops = {.line = on_line, .end = on_end};

static void execution_begin(struct execution *e, struct context *c)
{
  if (context_full(c)) {
    interp_http_text(e->x, 429, "Too many executions are waiting for context %s", context_id(c));
    return;
  }
  streams_add(e);
  execution_open_soon(e);
  context_submit(c, &e->run);
}

static void on_ready(struct context_wait *w, int code, const char *why)
{
  struct execution *e = (struct execution *)((char *)w - offsetof(struct execution, wait));
  if (code == 0)
    execution_begin(e, e->context);
  else
    interp_http_text(e->x, 500, "Failed to create context: %s", why);
}

/* A language's default context: the one that is there or on its way, else a new one. The answer waits for it. */
static void execution_by_language(struct execution *e, struct str given)
{
  struct contexts *all = interp_http_contexts(e->in);
  struct err err = ERR_NONE;
  char language[KERNEL_LANGUAGE_SIZE];
  if (kernel_language(given, language, sizeof(language)) < 0) {
    interp_http_text(e->x, 500, "Failed to create context: the name of the language is too long");
    return;
  }
  const struct kernel_spec *spec = NULL;
  struct context *c = contexts_default(all, language);
  if (!c) {
    spec = kernel_specs_find(e->in->specs, language, &err);
    if (!spec) {
      interp_http_no_kernel(e->x, language, &err);
      return;
    }
    c = contexts_default(all, spec->language);
  }
  if (c && context_visible(c)) {
    execution_begin(e, c);
    return;
  }
  e->wait.ready = on_ready;
  e->context = c;
  if (c)
    context_warm(c, &e->wait);
  else
    e->context = context_new(all, spec, language, KERNEL_HOME, true, &e->wait);
}

static void on_drain(struct http_x *x)
{
  struct execution *e = http_x_data(x);
  run_resume(&e->run);
}

static void on_gone(struct http_x *x, enum http_end how)
{
  struct execution *e = http_x_data(x);
  streams_remove(e);
  opened(e);
  context_wait_cancel(&e->wait);
  if (how == HTTP_PEER_CUT)
    run_detach(&e->run);
  else
    run_abandon(&e->run);
  e->gone(e->arg);
}

static const struct http_x_ops execution_ops = {.drain = on_drain, .gone = on_gone};

void execute_start(struct interp *in, struct http_x *x, struct str body, struct arena *arena, void (*gone)(void *arg),
                   void *arg)
{
  struct buf cleanup_buf wrong = BUF_INIT(2 * INTERP_BODY_MAX);
  struct execute_request r;
  struct execution *e = arena_alloc(http_x_arena(x), sizeof(*e));
  if (!e) {
    http_abort(x);
    return;
  }
  *e = (struct execution){.run = {.ops = &run_ops}, .in = in, .x = x, .gone = gone, .arg = arg};
  uuid4(e->run.id);
  http_x_handle(x, &execution_ops, e);
  if (execute_request_read(arena, body, &r, &wrong) < 0) {
    interp_http_json(x, 422, buf_str(&wrong));
    return;
  }
  e->run.code = r.code;
  e->run.env = r.env;
  if (r.context_id.p && r.language.p) {
    interp_http_text(x, 400, "Only one of context_id or language can be provided");
    return;
  }
  if (!r.context_id.p || str_is(r.context_id, "default")) {
    execution_by_language(e, r.language);
    return;
  }
  struct context *c = contexts_find(interp_http_contexts(in), r.context_id);
  if (c)
    execution_begin(e, c);
  else
    interp_http_text(x, 404, "Context " STR_FMT " not found", STR_ARG(r.context_id));
}
