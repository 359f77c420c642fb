/* SPDX-License-Identifier: Apache-2.0 */
/* interp.c - the HTTP side of the code interpreter: routes, contexts and health; see interp.h.
 *
 * Errors are plain text with the messages clients know; validation answers 422 with a list. Nothing is read from disk
 * and no kernel is started before the first request that needs it, so opening the port costs the agent nothing. */
#include "agent/interpreter/interp.h"
#include "agent/agent.h"
#include "agent/interpreter/interp_http.h"
#include "agent/interpreter/interp_request.h"
#include "agent/interpreter/kernel_nursery.h"
#include <arpa/inet.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

static struct interp *the_interp; /* one per agent */

/* What a request needs besides its exchange; lives in the exchange's arena. */
struct ask {
  struct interp *in;
  struct http_x *x;
  struct buf body;
  struct arena arena; /* what the body was read into */
  void (*full)(struct ask *a);
  struct context *context; /* being made or restarted */
  struct context_wait waits[2];
  int waiting;
  bool failed;
};

/* ---- answers ---- */

static size_t cors_header(struct http_x *x, struct http_header *h)
{
  if (!http_header(http_x_head(x), "origin").p)
    return 0;
  *h = (struct http_header){STR("access-control-allow-origin"), STR("*")};
  return 1;
}

int interp_http_reply(struct http_x *x, int status, const char *type, struct str body)
{
  struct http_header h[2] = {{STR("content-type"), str_of(type)}};
  size_t n = 1 + cors_header(x, &h[1]);
  return http_reply_with(x, status, h, n, body);
}

int interp_http_text(struct http_x *x, int status, const char *fmt, ...)
{
  struct buf cleanup_buf b = BUF_INIT(64 << 10);
  va_list ap;
  va_start(ap, fmt);
  buf_vaddf(&b, fmt, ap);
  va_end(ap);
  return interp_http_reply(x, status, "text/plain; charset=utf-8", buf_str(&b));
}

int interp_http_json(struct http_x *x, int status, struct str body)
{
  return interp_http_reply(x, status, "application/json", body);
}

int interp_http_stream(struct http_x *x, const char *id)
{
  struct http_header h[4] = {{STR("content-type"), STR("application/x-ndjson")},
                             {STR("cloche-execution-id"), str_of(id)}};
  size_t n = 2 + cors_header(x, &h[2]);
  if (n > 2)
    h[n++] = (struct http_header){STR("access-control-expose-headers"), STR("Cloche-Execution-Id")};
  return http_respond(x, 200, h, n, HTTP_CHUNKED);
}

void interp_http_no_kernel(struct http_x *x, const char *language, const struct err *why)
{
  struct buf cleanup_buf b = BUF_INIT(8192);
  struct jw w = {.b = &b, .ascii = true};
  char cleanup_free *message = xasprintf("The '%s' kernel is not available. %s", language, why->msg);
  char cleanup_free *brief = xasprintf("%s not found", language);
  buf_addz(&b, "Failed to create context: ");
  jw_open(&w, '{');
  jw_key(&w, "message");
  jw_z(&w, message);
  jw_key(&w, "short_message");
  jw_z(&w, brief);
  jw_close(&w, '}');
  interp_http_reply(x, 500, "text/plain; charset=utf-8", buf_str(&b));
}

struct contexts *interp_http_contexts(struct interp *in)
{
  if (in->contexts)
    return in->contexts;
  const char *text = getenv("CLOCHE_QUEUE_MAX");
  uint64_t most = CONTEXT_QUEUE_MAX;
  if (text && str_u64(str_of(text), &most) < 0)
    most = CONTEXT_QUEUE_MAX;
  in->specs = kernel_specs_new();
  in->contexts = contexts_new(&in->host, in->specs, (size_t)most);
  return in->contexts;
}

static void context_put(struct jw *w, const struct context *c)
{
  jw_open(w, '{');
  jw_key(w, "id");
  jw_z(w, context_id(c));
  jw_key(w, "language");
  jw_z(w, context_language(c));
  jw_key(w, "cwd");
  jw_z(w, context_cwd(c));
  jw_close(w, '}');
}

/* ---- the life of an ask ---- */

static void ask_cancel(struct ask *a)
{
  for (size_t i = 0; i < ARRAY_LEN(a->waits); i++)
    context_wait_cancel(&a->waits[i]);
  buf_free(&a->body);
  arena_free(&a->arena);
}

static void on_ask_gone(struct http_x *x, enum http_end how)
{
  (void)how;
  ask_cancel(http_x_data(x));
}

static const struct http_x_ops ask_ops = {.gone = on_ask_gone};

static void on_body(struct http_x *x, struct str chunk)
{
  struct ask *a = http_x_data(x);
  if (buf_adds(&a->body, chunk) < 0)
    http_abort(x);
}

static void on_body_end(struct http_x *x)
{
  struct ask *a = http_x_data(x);
  a->full(a);
}

static const struct http_x_ops body_ops = {.body = on_body, .body_end = on_body_end, .gone = on_ask_gone};

static struct ask *ask_new(struct interp *in, struct http_x *x, const struct http_x_ops *ops)
{
  struct ask *a = arena_alloc(http_x_arena(x), sizeof(*a));
  if (!a) {
    http_abort(x);
    return NULL;
  }
  a->in = in;
  a->x = x;
  buf_init(&a->body, INTERP_BODY_MAX);
  a->arena = ARENA_INIT(INTERP_PARSED_MAX);
  http_x_handle(x, ops, a);
  return a;
}

static void with_body(struct interp *in, struct http_x *x, size_t most, void (*full)(struct ask *a))
{
  struct ask *a = ask_new(in, x, &body_ops);
  if (!a)
    return;
  a->full = full;
  http_x_body_max(x, most);
  http_x_resume(x);
}

/* ---- routes ---- */

static void execute_gone(void *arg)
{
  ask_cancel(arg);
}

static void execute_full(struct ask *a)
{
  execute_start(a->in, a->x, buf_str(&a->body), &a->arena, execute_gone, a);
}

static void list_contexts(struct interp *in, struct http_x *x)
{
  struct buf cleanup_buf b = BUF_INIT(BUF_DEFAULT_MAX);
  struct jw w = JW(&b);
  struct contexts *all = interp_http_contexts(in);
  jw_open(&w, '[');
  for (struct context *c = NULL; (c = contexts_next(all, c));)
    context_put(&w, c);
  jw_close(&w, ']');
  interp_http_json(x, 200, buf_str(&b));
}

static struct ask *ask_of(struct context_wait *w, size_t i)
{
  return (struct ask *)((char *)(w - i) - offsetof(struct ask, waits));
}

static void on_created(struct context_wait *w, int code, const char *why)
{
  struct ask *a = ask_of(w, 0);
  if (code == CONTEXT_NO_CWD) {
    interp_http_text(a->x, 500, "Failed to set working directory");
  } else if (code < 0) {
    interp_http_text(a->x, 500, "Failed to create context: %s", why);
  } else {
    struct buf cleanup_buf b = BUF_INIT(64 << 10);
    struct jw jw = JW(&b);
    context_put(&jw, a->context);
    interp_http_json(a->x, 200, buf_str(&b));
  }
}

/* A client that leaves before its context is ready never learns its id. */
static void on_creator_gone(struct http_x *x, enum http_end how)
{
  struct ask *a = http_x_data(x);
  (void)how;
  if (a->waits[0].context) {
    context_wait_cancel(&a->waits[0]);
    context_delete(a->context);
  }
  ask_cancel(a);
}

static const struct http_x_ops create_ops = {.gone = on_creator_gone};

static void create_full(struct ask *a)
{
  struct buf cleanup_buf wrong = BUF_INIT(2 * INTERP_BODY_MAX);
  struct contexts *all = interp_http_contexts(a->in);
  struct context_request r;
  struct err err = ERR_NONE;
  char language[KERNEL_LANGUAGE_SIZE], cwd[PATH_MAX] = KERNEL_HOME;
  http_x_handle(a->x, &create_ops, a);
  if (context_request_read(&a->arena, buf_str(&a->body), &r, &wrong) < 0) {
    interp_http_json(a->x, 422, buf_str(&wrong));
    return;
  }
  if (r.cwd.p && str_copyz(r.cwd, cwd, sizeof(cwd)) < 0) {
    interp_http_text(a->x, 500, "Failed to set working directory");
    return;
  }
  if (kernel_language(r.language, language, sizeof(language)) < 0) {
    interp_http_text(a->x, 500, "Failed to create context: the name of the language is too long");
    return;
  }
  const struct kernel_spec *spec = kernel_specs_find(a->in->specs, language, &err);
  if (!spec) {
    interp_http_no_kernel(a->x, language, &err);
    return;
  }
  a->waits[0].ready = on_created;
  a->context = context_new(all, spec, language, cwd, false, &a->waits[0]);
}

/* The context that /execute would choose, without making one: false when the request was answered with an error. */
static bool interrupt_context(struct ask *a, const struct interrupt_request *r, struct context **out)
{
  struct contexts *all = interp_http_contexts(a->in);
  struct err err = ERR_NONE;
  char language[KERNEL_LANGUAGE_SIZE];
  *out = NULL;
  if (r->context_id.p && !str_is(r->context_id, "default")) {
    *out = contexts_find(all, r->context_id);
    if (!*out)
      interp_http_text(a->x, 404, "Context " STR_FMT " not found", STR_ARG(r->context_id));
    return *out != NULL;
  }
  if (kernel_language(r->language, language, sizeof(language)) < 0) {
    interp_http_text(a->x, 404, "No context has a language of that name: it is too long");
    return false;
  }
  *out = contexts_default(all, language);
  if (*out)
    return true;
  const struct kernel_spec *spec = kernel_specs_find(a->in->specs, language, &err);
  if (!spec) {
    interp_http_no_kernel(a->x, language, &err);
    return false;
  }
  *out = contexts_default(all, spec->language);
  return true;
}

static void interrupt_full(struct ask *a)
{
  struct buf cleanup_buf wrong = BUF_INIT(2 * INTERP_BODY_MAX);
  struct interrupt_request r;
  struct context *c;
  bool done;
  if (interrupt_request_read(&a->arena, buf_str(&a->body), &r, &wrong) < 0) {
    interp_http_json(a->x, 422, buf_str(&wrong));
    return;
  }
  if (r.context_id.p && r.language.p) {
    interp_http_text(a->x, 400, "Only one of context_id or language can be provided");
    return;
  }
  if (r.execution_id.p && !r.context_id.p && !r.language.p)
    done = contexts_interrupt(interp_http_contexts(a->in), r.execution_id);
  else if (interrupt_context(a, &r, &c))
    done = c && context_interrupt(c, r.execution_id);
  else
    return;
  interp_http_json(a->x, 200, done ? STR("{\"interrupted\":true}") : STR("{\"interrupted\":false}"));
}

static void delete_context(struct interp *in, struct http_x *x, struct context *c)
{
  (void)in;
  context_delete(c);
  interp_http_json(x, 200, STR("null"));
}

static void on_restarted(struct context_wait *w, int code, const char *why)
{
  struct ask *a = ask_of(w, 0);
  if (code == 0) {
    interp_http_json(a->x, 200, STR("null"));
    return;
  }
  log_warn("restart of context %s failed: %s", context_id(a->context), why);
  interp_http_text(a->x, 500, "Failed to restart context %s", context_id(a->context));
}

static void restart_context(struct interp *in, struct http_x *x, struct context *c)
{
  struct ask *a = ask_new(in, x, &ask_ops);
  if (!a)
    return;
  a->context = c;
  a->waits[0].ready = on_restarted;
  context_restart(c, &a->waits[0]);
}

/* ---- health ---- */

static void health_told(struct ask *a, int code)
{
  a->failed |= code < 0;
  if (--a->waiting > 0)
    return;
  if (a->failed)
    interp_http_text(a->x, 503, "A default kernel can't be started");
  else
    interp_http_json(a->x, 200, STR("\"OK\""));
}

static void on_health_first(struct context_wait *w, int code, const char *why)
{
  (void)why;
  health_told(ask_of(w, 0), code);
}

static void on_health_second(struct context_wait *w, int code, const char *why)
{
  (void)why;
  health_told(ask_of(w, 1), code);
}

static void health(struct interp *in, struct http_x *x)
{
  struct ask *a = ask_new(in, x, &ask_ops);
  if (!a)
    return;
  struct contexts *all = interp_http_contexts(in);
  struct context *first = contexts_default(all, "python"), *second = contexts_default(all, "javascript");
  a->waits[0].ready = on_health_first;
  a->waits[1].ready = on_health_second;
  a->waiting = 1 + !!first + !!second;
  if (first)
    context_warm(first, &a->waits[0]);
  if (second)
    context_warm(second, &a->waits[1]);
  health_told(a, 0);
}

/* ---- routing ---- */

static void not_allowed(struct http_x *x, const char *allow)
{
  struct http_header h[3] = {{STR("content-type"), STR("application/json")}, {STR("allow"), str_of(allow)}};
  size_t n = 2 + cors_header(x, &h[2]);
  http_reply_with(x, 405, h, n, STR("{\"detail\":\"Method Not Allowed\"}"));
}

static void preflight(struct http_x *x)
{
  struct str asked = http_header(http_x_head(x), "access-control-request-headers");
  struct http_header h[6] = {
      {STR("content-type"), STR("text/plain; charset=utf-8")},
      {STR("access-control-allow-origin"), STR("*")},
      {STR("access-control-allow-methods"), STR("DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")},
      {STR("access-control-max-age"), STR("600")},
      {STR("vary"), STR("Origin")},
      {STR("access-control-allow-headers"), asked},
  };
  http_reply_with(x, 200, h, asked.p ? 6 : 5, STR("OK"));
}

/* /contexts/{id} and /contexts/{id}/restart. */
static void route_context(struct interp *in, struct http_x *x, struct str rest)
{
  struct str method = http_x_head(x)->method, id, tail;
  bool deeper = str_cut(rest, '/', &id, &tail);
  bool restart = deeper && str_is(tail, "restart");
  if (!id.n || (deeper && !restart)) {
    interp_http_json(x, 404, STR("{\"detail\":\"Not Found\"}"));
    return;
  }
  if (!str_is(method, restart ? "POST" : "DELETE")) {
    not_allowed(x, restart ? "POST" : "DELETE");
    return;
  }
  struct buf cleanup_buf name = BUF_INIT(8192);
  if (percent_decode(id, false, &name) < 0)
    buf_adds(&name, id);
  struct context *c = contexts_find(interp_http_contexts(in), buf_str(&name));
  if (!c)
    interp_http_text(x, 404, "Context " STR_FMT " not found", STR_ARG(buf_str(&name)));
  else if (restart)
    restart_context(in, x, c);
  else
    delete_context(in, x, c);
}

static void on_request(struct http_x *x, void *arg)
{
  struct interp *in = arg;
  const struct http_head *h = http_x_head(x);
  bool get = str_is(h->method, "GET") || str_is(h->method, "HEAD"), post = str_is(h->method, "POST");
  if (str_is(h->method, "OPTIONS") && http_header(h, "origin").p && http_header(h, "access-control-request-method").p)
    preflight(x);
  else if (str_is(h->path, "/execute"))
    post ? with_body(in, x, INTERP_BODY_MAX, execute_full) : not_allowed(x, "POST");
  else if (str_is(h->path, "/health"))
    get ? health(in, x) : not_allowed(x, "GET, HEAD");
  else if (str_is(h->path, "/contexts"))
    get    ? list_contexts(in, x)
    : post ? with_body(in, x, INTERP_BODY_MAX, create_full)
           : not_allowed(x, "GET, HEAD, POST");
  else if (str_is(h->path, "/interrupt"))
    post ? with_body(in, x, INTERP_ORDER_MAX, interrupt_full) : not_allowed(x, "POST");
  else if (str_starts(h->path, STR("/contexts/")))
    route_context(in, x, str_skip(h->path, sizeof("/contexts/") - 1));
  else
    interp_http_json(x, 404, STR("{\"detail\":\"Not Found\"}"));
}

/* ---- life ---- */

static uint64_t number_from(const char *name, uint64_t otherwise)
{
  const char *text = getenv(name);
  uint64_t v;
  return text && str_u64(str_of(text), &v) == 0 ? v : otherwise;
}

static int listen_on(uint16_t port)
{
  int cleanup_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_ANY)};
  if (fd < 0)
    return -errno;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 1024) != 0)
    return -errno;
  return steal_fd(&fd);
}

static void on_renewed(void *arg)
{
  struct interp *in = arg;
  if (in->contexts)
    contexts_renew(in->contexts);
}

int interp_start(uv_loop_t *loop, struct agent *agent)
{
  struct http_limits limits = http_limits_default;
  uint64_t port = number_from("CLOCHE_INTERP_PORT", INTERP_PORT);
  int fd = listen_on((uint16_t)port);
  if (fd < 0)
    return fd;
  struct interp *in = xcalloc(1, sizeof(*in));
  in->agent = agent;
  agent->renewed = on_renewed;
  agent->renewed_arg = in;
  in->host = (struct kernel_host){.loop = loop, .agent = agent, .output_max = number_from("CLOCHE_OUTPUT_MAX", 0)};
  uv_timer_init(loop, &in->keepalive);
  uv_timer_init(loop, &in->opening);
  in->keepalive.data = in->opening.data = in;
  in->server = http_server_new(loop, &limits, on_request, in);
  int rc = http_server_listen(in->server, fd);
  the_interp = in;
  return rc;
}

void interp_warm(const char *language)
{
  struct context *c = the_interp ? contexts_default(interp_http_contexts(the_interp), language) : NULL;
  if (c)
    context_warm(c, NULL);
}

void interp_named(void)
{
  if (the_interp && the_interp->contexts)
    contexts_tell(the_interp->contexts);
}

int interp_adopt(const char *language, const int fds[3], pid_t pid, bool nursery)
{
  struct err err = ERR_NONE;
  if (!the_interp)
    return -EINVAL;
  struct contexts *all = interp_http_contexts(the_interp);
  const struct kernel_spec *spec = kernel_specs_find(the_interp->specs, language, &err);
  if (!spec)
    return -ENOENT;
  if (nursery)
    return nursery_adopt(&the_interp->host, spec, fds[0]);
  struct context *c = contexts_default(all, spec->language);
  return c ? context_adopt(c, fds, pid) : -ENOENT;
}

static void on_keepalive_closed(uv_handle_t *h)
{
  free(h->data);
}

static void on_opening_closed(uv_handle_t *h)
{
  struct interp *in = h->data;
  uv_close((uv_handle_t *)&in->keepalive, on_keepalive_closed);
}

void interp_stop(void)
{
  struct interp *in = the_interp;
  if (!in)
    return;
  the_interp = NULL;
  http_server_free(in->server);
  if (in->contexts)
    contexts_free(in->contexts);
  kernel_spares_end();
  nursery_end_all();
  if (in->specs)
    kernel_specs_free(in->specs);
  uv_close((uv_handle_t *)&in->opening, on_opening_closed);
}
