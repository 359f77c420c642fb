/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_api.c - the state of the server: GET /metrics for Prometheus, /health and /readyz (requests are answered) and
 * /livez (this gate lives). */
#include "gate/api/api.h"
#include "gate/api/audit_tell.h"
#include "gate/metrics.h"

/* ---- counting ---- */

static enum metrics_class class_of(const struct req *r)
{
  if (!r->entry)
    return CLASS_OTHER;
  struct str path = str_of(r->entry->path), method = str_of(r->entry->method);
  if (str_starts(path, STR("v2/")))
    path = str_skip(path, 3);
  if (str_is(path, "sandboxes"))
    return str_is(method, "POST") ? CLASS_CREATE : CLASS_LIST;
  if (str_starts(path, STR("sandboxes/")))
    return CLASS_SANDBOX;
  if (str_starts(path, STR("templates")))
    return CLASS_TEMPLATE;
  return str_starts(path, STR("api-keys")) || str_starts(path, STR("teams")) ? CLASS_ACCOUNT : CLASS_OTHER;
}

/* Which requests have a span: those that make, change or end something. */
static const char *span_name(const struct req *r)
{
  static const struct {
    handler_fn handler;
    const char *name;
  } named[] = {
      {sandbox_create_v1, "create"},
      {sandbox_create_v2, "create"},
      {sandbox_pause, "pause"},
      {sandbox_resume, "resume"},
      {sandbox_connect_v1, "connect"},
      {sandbox_connect_v2, "connect"},
      {sandbox_fork, "fork"},
      {snapshot_create, "snapshot"},
      {sandbox_kill, "kill"},
      {build_start, "build"},
      {build_start_requested, "build"},
      {build_request, "build-request"},
      {build_request_v2, "build-request"},
  };
  for (size_t i = 0; r->entry && i < ARRAY_LEN(named); i++)
    if (named[i].handler == r->entry->handler)
      return named[i].name;
  return NULL;
}

void api_take_marks(struct req *r, struct str packet)
{
  struct str marks = wire_get(packet, W_TRACE);
  if (marks.n == sizeof(r->marks))
    memcpy(&r->marks, marks.p, marks.n);
}

/* What the marks of the warden lie between. */
static void add_marked_phases(struct span *s, const struct wire_trace *m)
{
  bool create = str_is(s->name, "create");
  const char *second = create ? "agent" : str_is(s->name, "pause") ? "dump" : "restore";
  span_phase_add(s, create ? "jail" : "queue", m->came_us, m->boot_us);
  span_phase_add(s, second, m->boot_us, m->ready_us);
  span_phase_add(s, "store", m->ready_us, m->kept_us);
}

/* Strangers, who have shown no key that is one, put nothing into anybody's traces. */
static void trace_api(struct req *r, int status)
{
  const char *name = tracing_on(r->gate) && r->team.id[0] ? span_name(r) : NULL;
  r->traced = name && tracing_begin(r->gate, http_x_head(r->x), &r->trace);
  if (!r->traced)
    return;
  int64_t now = clock_mono_us();
  const struct wire_trace *m = &r->marks;
  bool about_build = str_starts(str_of(name), STR("build"));
  struct span s = {.context = r->trace,
                   .name = str_of(name),
                   .route = str_of(r->entry->path),
                   .box = about_build ? STR_NONE
                          : r->made.n ? r->made
                                      : r->id,
                   .build = !about_build ? STR_NONE
                            : r->made.n  ? r->made
                                         : r->second,
                   .team = str_of(r->team.id),
                   .status = (unsigned)status};
  span_phase_add(&s, "gate", r->began_us, r->called_us);
  if (m->kept_us)
    add_marked_phases(&s, m);
  else
    span_phase_add(&s, "warden", r->called_us, now);
  tracing_end(r->gate, &s, r->began_us, now);
}

void metrics_api(struct req *r, int status)
{
  audit_tell(r, status);
  trace_api(r, status);
  metrics_record(r->gate, r->x,
                 &(struct metrics_answer){.class = class_of(r),
                                          .team = r->team.id,
                                          .trace = r->traced ? r->trace.trace : NULL,
                                          .status = status,
                                          .took_us = clock_mono_us() - r->began_us});
}

/* ---- telling ---- */

static void drop_told(struct req *r)
{
  metrics_told_free(r->state);
}

static void item_told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  metrics_told_item(r->state, reply->packet);
}

static void all_told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct gate *g = r->gate;
  if (api_refused(r, reply))
    return;
  if (metrics_told_end(r->state, reply->packet)) {
    api_error(r, 500, "the warden returned no status");
    return;
  }
  bool open = text_sink_wanted(http_header(http_x_head(r->x), "accept"));
  cleanup_buf struct buf b = BUF_INIT(64 << 20);
  struct text_sink text;
  metrics_note_open(g);
  text_sink_init(&text, &b, open);
  metrics_tell(&text.sink, g->slots, g->nslots, g->metrics_teams, g->config->metrics_teams_max, r->state);
  text_sink_end(&text);
  r->answered = true;
  http_reply(r->x, 200,
             open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                  : "text/plain; version=0.0.4; charset=utf-8",
             buf_str(&b));
}

/* The administrator's token, or the listener made for it: figures are of all teams together. */
void metrics(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  r->state = metrics_told_new();
  r->drop = drop_told;
  metrics_ask(&b, r->gate->metrics_teams, r->gate->config->metrics_teams_max);
  api_call_warden(r, &b, item_told, all_told);
}

static void told_alive(struct req *r, const char *text)
{
  r->answered = true;
  http_reply(r->x, 200, "text/plain; charset=utf-8", str_of(text));
}

void health(struct req *r)
{
  if (r->gate->greeted)
    told_alive(r, "Health check successful");
  else
    api_error(r, 503, "the warden is not connected");
}

void alive(struct req *r)
{
  told_alive(r, "alive");
}
