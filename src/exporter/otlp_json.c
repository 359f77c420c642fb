/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_json.c - see otlp_json.h. */
#include "exporter/otlp_json.h"

#include <stdio.h>

enum { KIND_INTERNAL = 1, KIND_SERVER = 2, STATUS_ERROR = 2 };

static void put_text(struct jw *w, const char *key, struct str value)
{
  if (!value.n)
    return;
  jw_open(w, '{');
  jw_key(w, "key");
  jw_z(w, key);
  jw_key(w, "value");
  jw_open(w, '{');
  jw_key(w, "stringValue");
  jw_str(w, value);
  jw_close(w, '}');
  jw_close(w, '}');
}

static void put_number(struct jw *w, const char *key, uint64_t n)
{
  char text[U64_TEXT];
  snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
  jw_open(w, '{');
  jw_key(w, "key");
  jw_z(w, key);
  jw_key(w, "value");
  jw_open(w, '{');
  jw_key(w, "intValue");
  jw_z(w, text);
  jw_close(w, '}');
  jw_close(w, '}');
}

static void put_id(struct jw *w, const char *key, const uint8_t *id, size_t n)
{
  char text[40];
  uint8_t any = 0;
  for (size_t i = 0; i < n; i++)
    any |= id[i];
  if (!any)
    return;
  hex_encode(id, n, text);
  jw_key(w, key);
  jw_z(w, text);
}

static void put_time(struct jw *w, const char *key, int64_t us)
{
  char text[U64_TEXT + 4];
  snprintf(text, sizeof(text), "%lld000", (long long)MAX(us, (int64_t)0));
  jw_key(w, key);
  jw_z(w, text);
}

/* Of a request with one resource and one scope: up to the list of what it is about. */
static void request_begin(struct jw *w, const char *resources, const char *scopes, const char *list, const char *host)
{
  jw_open(w, '{');
  jw_key(w, resources);
  jw_open(w, '[');
  jw_open(w, '{');
  jw_key(w, "resource");
  jw_open(w, '{');
  jw_key(w, "attributes");
  jw_open(w, '[');
  put_text(w, "service.name", STR("cloche"));
  put_text(w, "service.version", STR(CLOCHE_VERSION));
  put_text(w, "host.name", str_of(host));
  jw_close(w, ']');
  jw_close(w, '}');
  jw_key(w, scopes);
  jw_open(w, '[');
  jw_open(w, '{');
  jw_key(w, "scope");
  jw_open(w, '{');
  jw_key(w, "name");
  jw_z(w, "cloche");
  jw_close(w, '}');
  jw_key(w, list);
  jw_open(w, '[');
}

static void request_end(struct jw *w)
{
  jw_close(w, ']');
  jw_close(w, '}');
  jw_close(w, ']');
  jw_close(w, '}');
  jw_close(w, ']');
  jw_close(w, '}');
}

void otlp_spans_begin(struct jw *w, const char *host)
{
  request_begin(w, "resourceSpans", "scopeSpans", "spans", host);
}

void otlp_spans_end(struct jw *w)
{
  request_end(w);
}

static void span_open(struct jw *w, const struct span *s, const uint8_t id[8], const uint8_t parent[8], struct str name,
                      int kind)
{
  jw_open(w, '{');
  put_id(w, "traceId", s->context.trace, sizeof(s->context.trace));
  put_id(w, "spanId", id, 8);
  put_id(w, "parentSpanId", parent, 8);
  jw_key(w, "name");
  jw_str(w, name);
  jw_key(w, "kind");
  jw_int(w, kind);
}

static void put_phase(struct jw *w, const struct span *s, const struct span_phase *p)
{
  uint8_t id[8];
  random_bytes(id, sizeof(id));
  span_open(w, s, id, s->id, p->text, KIND_INTERNAL);
  put_time(w, "startTimeUnixNano", p->from_us);
  put_time(w, "endTimeUnixNano", p->to_us);
  jw_close(w, '}');
}

void otlp_span_add(struct jw *w, const struct span *s)
{
  span_open(w, s, s->id, s->context.parent, s->name, s->route.n ? KIND_SERVER : KIND_INTERNAL);
  put_time(w, "startTimeUnixNano", s->from_us);
  put_time(w, "endTimeUnixNano", s->to_us);
  jw_key(w, "attributes");
  jw_open(w, '[');
  put_text(w, "http.route", s->route);
  if (s->route.n)
    put_number(w, "http.response.status_code", s->status);
  put_text(w, "cloche.build.id", s->build);
  put_text(w, "cloche.sandbox.id", s->box);
  put_text(w, "cloche.team.id", s->team);
  jw_close(w, ']');
  jw_key(w, "status");
  jw_open(w, '{');
  if (s->status >= 500 || !s->status) {
    jw_key(w, "code");
    jw_int(w, STATUS_ERROR);
  }
  jw_close(w, '}');
  jw_close(w, '}');
  for (size_t i = 0; i < s->nphases; i++)
    put_phase(w, s, &s->phases[i]);
}

/* ---- logs ---- */

void otlp_logs_begin(struct jw *w, const char *host)
{
  request_begin(w, "resourceLogs", "scopeLogs", "logRecords", host);
}

void otlp_logs_end(struct jw *w)
{
  request_end(w);
}

void otlp_log_add(struct jw *w, const struct otlp_log *l)
{
  static const struct {
    const char *text;
    int number;
  } levels[] = {{"DEBUG", 5}, {"INFO", 9}, {"WARN", 13}, {"ERROR", 17}};
  size_t level = l->level >= 0 && (size_t)l->level < ARRAY_LEN(levels) ? (size_t)l->level : 1;
  jw_open(w, '{');
  put_time(w, "timeUnixNano", l->at_us);
  put_time(w, "observedTimeUnixNano", clock_wall_us());
  jw_key(w, "severityNumber");
  jw_int(w, levels[level].number);
  jw_key(w, "severityText");
  jw_z(w, levels[level].text);
  jw_key(w, "body");
  jw_open(w, '{');
  jw_key(w, "stringValue");
  jw_str(w, l->text);
  jw_close(w, '}');
  jw_key(w, "attributes");
  jw_open(w, '[');
  put_text(w, "cloche.sandbox.id", l->box);
  put_text(w, "cloche.team.id", l->team);
  put_text(w, "log.iostream", l->stream);
  put_text(w, "cloche.process.pid", l->pid);
  jw_close(w, ']');
  jw_close(w, '}');
}
