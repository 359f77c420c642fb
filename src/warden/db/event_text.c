/* SPDX-License-Identifier: Apache-2.0 */
/* event_text.c - what events say, and how they are spelled; see event.h. Pure: no database. */
#include "warden/db/event.h"

#include <arpa/inet.h>
#include <stdio.h>

#define VERSION  "v2"
#define CATEGORY "lifecycle"

/* ---- data ---- */

/* The length of the escape at the beginning, 0 = it is none. */
static size_t escape_at(struct str s)
{
  uint8_t code[2];
  if (s.n < 2 || s.p[0] != '\\')
    return 0;
  if (s.p[1] == 'u')
    return s.n >= 6 && !hex_decode(str_sub(s, 2, 4), code, sizeof(code)) ? 6 : 0;
  return str_find(STR("\"\\/bfnrt"), s.p[1]) >= 0 ? 2 : 0;
}

/* The length of the JSON string at the beginning, quotes included; 0 = there is none. */
static size_t string_at(struct str s)
{
  if (!s.n || s.p[0] != '"')
    return 0;
  for (size_t i = 1, step; i < s.n; i += step) {
    if (s.p[i] == '"')
      return utf8_valid(str_sub(s, 0, i)) ? i + 1 : 0;
    step = s.p[i] == '\\' ? escape_at(str_skip(s, i)) : (unsigned char)s.p[i] >= 0x20;
    if (!step)
      return 0;
  }
  return 0;
}

static bool skip_string(struct str *s)
{
  size_t n = string_at(*s);
  *s = str_skip(*s, n);
  return n != 0;
}

static bool skip_char(struct str *s, char c)
{
  bool there = s->n && s->p[0] == c;
  *s = str_skip(*s, there);
  return there;
}

struct str event_metadata(struct str config)
{
  static const char head[] = "{\"metadata\":";
  if (!str_starts(config, STR(head)))
    return STR_NONE;
  struct str text = str_skip(config, sizeof(head) - 1), rest = text;
  if (!skip_char(&rest, '{'))
    return STR_NONE;
  do {
    if (!skip_string(&rest) || !skip_char(&rest, ':') || !skip_string(&rest))
      return STR_NONE;
  } while (skip_char(&rest, ','));
  return skip_char(&rest, '}') ? str_sub(text, 0, text.n - rest.n) : STR_NONE;
}

const char *event_kill_reason(struct str cause)
{
  static const struct {
    const char *begins, *reason;
  } known[] = {
      {"timeout:", "timeout"},
      {"killed: by the server's administrator", "admin"},
      {"killed: by the root user", "admin"},
      {"killed:", "request"},
      {"stopped:", "admin"},
      {"lost: its template", "base_template_missing"},
      {"lost:", "orphaned"},
  };
  for (size_t i = 0; i < ARRAY_LEN(known); i++)
    if (str_starts(cause, str_of(known[i].begins)))
      return known[i].reason;
  return "unknown";
}

static void put_key(struct jw *w, const char *key, const char *value)
{
  jw_key(w, key);
  jw_z(w, value);
}

/* Without the fraction, as `set_timeout` is. */
static void put_second(struct jw *w, const char *key, int64_t us)
{
  char text[CLOCK_TEXT];
  clock_text(us, text);
  snprintf(text + strlen("2026-01-02T03:04:05"), 2, "Z");
  put_key(w, key, text);
}

static void put_time(struct jw *w, const char *key, int64_t us)
{
  char text[CLOCK_TEXT];
  clock_text(us, text);
  put_key(w, key, text);
}

/* An address or a prefix, not a name. */
static bool is_cidr(struct str line)
{
  struct in_addr v4;
  struct in6_addr v6;
  char text[INET6_ADDRSTRLEN];
  struct str address, bits;
  str_cut(line, '/', &address, &bits);
  return !str_copyz(address, text, sizeof(text)) &&
         (inet_pton(AF_INET, text, &v4) == 1 || inet_pton(AF_INET6, text, &v6) == 1);
}

/* A single address is written as the prefix that it is. */
static void put_cidr(struct jw *w, struct str line)
{
  char text[INET6_ADDRSTRLEN + 8];
  bool prefix = str_find(line, '/') >= 0;
  snprintf(text, sizeof(text), STR_FMT "%s", STR_ARG(line), prefix ? "" : str_find(line, ':') >= 0 ? "/128" : "/32");
  jw_z(w, text);
}

static void put_lines(struct jw *w, const char *key, struct str lines, bool cidrs, bool all)
{
  struct str line;
  jw_key(w, key);
  jw_open(w, '[');
  if (all)
    jw_z(w, "0.0.0.0/0");
  while (lines.n) {
    str_cut(lines, '\n', &line, &lines);
    if (!line.n || is_cidr(line) != cidrs)
      continue;
    if (cidrs)
      put_cidr(w, line);
    else
      jw_str(w, line);
  }
  jw_close(w, ']');
}

/* No internet at all is a prefix that holds everything. */
static void put_network(struct jw *w, const struct event_data *d)
{
  bool all = d->no_internet && str_search(d->deny, STR("0.0.0.0/0")) < 0;
  jw_key(w, "network_egress");
  jw_open(w, '{');
  put_lines(w, "allowed_cidrs", d->allow, true, false);
  put_lines(w, "denied_cidrs", d->deny, true, all);
  put_lines(w, "allowed_domains", d->allow, false, false);
  jw_close(w, '}');
}

static void put_execution(struct jw *w, const struct event_data *d)
{
  jw_key(w, "execution");
  jw_open(w, '{');
  put_time(w, "started_at", d->started_us);
  jw_key(w, "vcpu_count");
  jw_uint(w, d->cpus);
  jw_key(w, "memory_mb");
  jw_uint(w, d->memory_mb);
  jw_key(w, "execution_time");
  jw_int(w, d->ended_us > d->started_us ? (d->ended_us - d->started_us) / 1000 : 0);
  jw_close(w, '}');
}

void event_data_json(struct buf *out, const struct event_data *d)
{
  struct jw w = JW(out);
  if (!d->metadata.n && !d->set_timeout_us && !d->network && !d->execution && !d->kill_reason)
    return;
  jw_open(&w, '{');
  if (d->metadata.n) {
    jw_key(&w, "sandbox_metadata");
    jw_raw(&w, d->metadata);
  }
  if (d->set_timeout_us)
    put_second(&w, "set_timeout", d->set_timeout_us);
  if (d->network)
    put_network(&w, d);
  if (d->execution)
    put_execution(&w, d);
  if (d->kill_reason) {
    put_key(&w, "kill_reason", d->kill_reason);
    put_key(&w, "kill_cause", d->kill_cause);
  }
  jw_close(&w, '}');
}

/* ---- spellings ---- */

struct event event_of(const struct row_box *row, enum event_type type, int64_t at_us, const char *data)
{
  struct event e = {.at_us = at_us, .type = type, .data = data};
  uuid4(e.id);
  memcpy(e.team, row->team, sizeof(e.team));
  memcpy(e.sandbox, row->id, sizeof(e.sandbox));
  memcpy(e.execution, row->execution, sizeof(e.execution));
  memcpy(e.template_id, row->base[0] ? row->base : row->template_id, sizeof(e.template_id));
  memcpy(e.build, row->build, sizeof(e.build));
  return e;
}

static void put_head(struct jw *w, const struct event *e, const char *category, const char *label)
{
  const char *word = event_type_label(e->type);
  put_key(w, "id", e->id);
  put_key(w, "version", VERSION);
  put_key(w, "type", event_type_name(e->type));
  put_time(w, "timestamp", e->at_us);
  put_key(w, category, word[0] ? CATEGORY : "");
  put_key(w, label, word);
}

void event_rest_json(struct buf *out, const struct event *e)
{
  struct jw w = JW(out);
  jw_open(&w, '{');
  put_head(&w, e, "eventCategory", "eventLabel");
  jw_key(&w, "eventData");
  jw_raw(&w, e->data[0] ? str_of(e->data) : STR("null"));
  put_key(&w, "sandboxId", e->sandbox);
  put_key(&w, "sandboxExecutionId", e->execution);
  put_key(&w, "sandboxTemplateId", e->template_id);
  put_key(&w, "sandboxBuildId", e->build);
  put_key(&w, "sandboxTeamId", e->team);
  jw_close(&w, '}');
}

void event_body_json(struct buf *out, const struct event *e)
{
  struct jw w = JW(out);
  jw_open(&w, '{');
  put_head(&w, e, "event_category", "event_label");
  if (e->data[0]) {
    jw_key(&w, "event_data");
    jw_raw(&w, str_of(e->data));
  }
  put_key(&w, "sandbox_id", e->sandbox);
  put_key(&w, "sandbox_execution_id", e->execution);
  put_key(&w, "sandbox_template_id", e->template_id);
  put_key(&w, "sandbox_build_id", e->build);
  put_key(&w, "sandbox_team_id", e->team);
  jw_close(&w, '}');
}
