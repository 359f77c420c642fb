/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_network_log.c - GET /sandboxes/{id}/network/log: which names a box looked up and where it connected, from its
 * ring (netlog/net_lines.h describes the lines), read through a descriptor that the warden hands over.
 *
 * Lines are looked at from the newest back, in slices (log_scan.h): the end of a connection comes before its beginning
 * and is told with it. The answer has the newest entries of the requested time, oldest first. */
#include "gate/api/log_scan.h"
#include "wire/logring.h"

#include <stdio.h>

#define RING_READ  ((size_t)4 << 20)
#define OUT_MOST   ((size_t)8 << 20)
#define LIMIT      1000
#define LINE_MOST  ((size_t)32 << 10)
#define CONNECTION 24 /* bytes of a connection's number as text */

struct net_end {
  int64_t at_us, in, out;
};

struct net_scan {
  struct log_scan scan; /* first: see scan_of */
  struct req *r;
  struct str id;
  uint64_t limit, taken;
  int64_t from_us, to_us;
  struct buf ring;
  struct str rest; /* lines that were not looked at yet */
  struct buf out;  /* entries, newest first */
  size_t at[LIMIT + 1];
  struct map ends; /* number of a connection -> struct net_end, its beginning not seen yet */
};

static struct net_scan *scan_of(struct log_scan *s)
{
  return (struct net_scan *)s;
}

/* ---- entries ---- */

static void put_time(struct jw *w, const char *key, int64_t us)
{
  char text[CLOCK_TEXT];
  clock_text(us, text);
  jw_key(w, key);
  jw_z(w, text);
}

static void put_text(struct jw *w, const char *key, const struct json *v)
{
  if (!json_is(v, JSON_STRING))
    return;
  jw_key(w, key);
  jw_str(w, v->text);
}

static void put_number(struct jw *w, const char *key, const struct json *v)
{
  int64_t n;
  if (json_int(v, &n))
    return;
  jw_key(w, key);
  jw_int(w, n);
}

static void put_name(struct jw *w, const struct json *line)
{
  static const char *const codes[] = {"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"};
  int64_t code = 0, type = 0;
  put_text(w, "name", json_get(line, "n"));
  jw_key(w, "addresses");
  jw_open(w, '[');
  for (const struct json *a = json_is(json_get(line, "a"), JSON_ARRAY) ? json_get(line, "a")->kids : NULL; a;
       a = a->next)
    if (a->type == JSON_STRING)
      jw_str(w, a->text);
  jw_close(w, ']');
  if (!json_int(json_get(line, "k"), &type)) {
    jw_key(w, "recordType");
    jw_int(w, type);
  }
  if (!json_int(json_get(line, "r"), &code) && code >= 0 && code < (int64_t)ARRAY_LEN(codes)) {
    jw_key(w, "status");
    jw_z(w, codes[code]);
  }
}

static void put_place(struct jw *w, const struct json *line)
{
  put_text(w, "protocol", json_get(line, "p"));
  put_text(w, "name", json_get(line, "n"));
  put_text(w, "address", json_get(line, "a"));
  put_number(w, "port", json_get(line, "q"));
}

static void put_connection(struct jw *w, const struct json *line, bool refused, const struct net_end *end)
{
  jw_key(w, "verdict");
  jw_z(w, refused ? "refused" : "allowed");
  put_place(w, line);
  if (refused)
    put_text(w, "reason", json_get(line, "w"));
  if (!end)
    return;
  put_time(w, "endedAt", end->at_us);
  jw_key(w, "bytesIn");
  jw_int(w, end->in);
  jw_key(w, "bytesOut");
  jw_int(w, end->out);
}

static void put_request(struct jw *w, const struct json *line)
{
  put_text(w, "verdict", json_get(line, "v"));
  put_place(w, line);
  put_text(w, "rule", json_get(line, "w"));
  put_text(w, "method", json_get(line, "m"));
  put_text(w, "path", json_get(line, "u"));
  put_number(w, "status", json_get(line, "s"));
  put_number(w, "bytesIn", json_get(line, "i"));
  put_number(w, "bytesOut", json_get(line, "o"));
  jw_key(w, "proxied");
  jw_bool(w, json_given(json_get(line, "x")));
}

static const char *entry_type(struct str event)
{
  if (str_is(event, "open") || str_is(event, "refused"))
    return "connection";
  return str_is(event, "name") ? "name" : str_is(event, "request") ? "request" : str_is(event, "lost") ? "lost" : NULL;
}

static void put_entry(struct net_scan *s, const struct json *line, int64_t at_us, const struct net_end *end)
{
  struct str event = json_text(json_get(line, "e"), STR(""));
  const char *type = entry_type(event);
  if (!type)
    return;
  s->at[s->taken++] = s->out.n;
  struct jw w = JW(&s->out);
  jw_open(&w, '{');
  put_time(&w, "timestamp", at_us);
  jw_key(&w, "type");
  jw_z(&w, type);
  if (str_is(event, "name"))
    put_name(&w, line);
  else if (str_is(event, "request"))
    put_request(&w, line);
  else if (!str_is(event, "lost"))
    put_connection(&w, line, str_is(event, "refused"), end);
  jw_close(&w, '}');
}

/* ---- lines ---- */

static bool connection_of(const struct json *line, char key[CONNECTION])
{
  int64_t number;
  if (json_int(json_get(line, "c"), &number))
    return false;
  snprintf(key, CONNECTION, "%lld", (long long)number);
  return true;
}

static void take_end(struct net_scan *s, const struct json *line, int64_t at_us)
{
  char key[CONNECTION];
  if (!connection_of(line, key) || map_get(&s->ends, str_of(key)))
    return;
  struct net_end *end = xcalloc(1, sizeof(*end));
  end->at_us = at_us;
  json_int(json_get(line, "i"), &end->in);
  json_int(json_get(line, "o"), &end->out);
  map_put(&s->ends, str_of(key), end);
}

static void take_line(struct net_scan *s, struct str text)
{
  cleanup_arena struct arena a = ARENA_INIT((size_t)64 * LINE_MOST);
  char key[CONNECTION];
  int64_t at_us;
  if (!text.n || text.n > LINE_MOST)
    return;
  const struct json *line = json_read(&a, text, JSON_REPAIR_UTF8, NULL);
  if (!json_is(line, JSON_OBJECT) || json_int(json_get(line, "t"), &at_us))
    return;
  if (str_is(json_text(json_get(line, "e"), STR("")), "end")) {
    take_end(s, line, at_us);
    return;
  }
  struct net_end *end = connection_of(line, key) ? map_del(&s->ends, str_of(key)) : NULL;
  int64_t latest = end ? MAX(at_us, end->at_us) : at_us;
  if (latest >= s->from_us && at_us <= s->to_us)
    put_entry(s, line, at_us, end);
  free(end);
}

static struct str last_line(struct net_scan *s)
{
  struct str body = str_sub(s->rest, 0, s->rest.n - 1); /* all lines are whole */
  ptrdiff_t before = str_rfind(body, '\n');
  struct str line = str_skip(body, (size_t)(before + 1));
  s->rest = str_sub(s->rest, 0, (size_t)(before + 1));
  return line;
}

static bool has_more(const struct net_scan *s)
{
  return s->rest.n && s->taken < s->limit && s->out.n < OUT_MOST;
}

static bool step(struct log_scan *scan)
{
  struct net_scan *s = scan_of(scan);
  if (has_more(s))
    take_line(s, last_line(s));
  return has_more(s);
}

static void answer(struct log_scan *scan)
{
  struct net_scan *s = scan_of(scan);
  cleanup_buf struct buf b = BUF_INIT(2 * OUT_MOST);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "entries");
  jw_open(&w, '[');
  s->at[s->taken] = s->out.n;
  for (size_t i = s->taken; i-- > 0;)
    jw_raw(&w, str_sub(buf_str(&s->out), s->at[i], s->at[i + 1] - s->at[i]));
  jw_close(&w, ']');
  jw_close(&w, '}');
  if (buf_failed(&b) || buf_failed(&s->out))
    api_error(s->r, 500, "the log is too large for one response; request fewer entries");
  else
    api_json(s->r, 200, buf_str(&b));
  buf_free(&s->out); /* the client may take its time */
}

/* ---- the ring ---- */

static void drop_ring(struct log_scan *s)
{
  buf_free(&scan_of(s)->ring);
}

static void got_ring(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct net_scan *s = r->state;
  cleanup_fd int fd = reply->fd;
  r->pending_call = 0;
  if (reply->status) {
    log_scan_end(&s->scan);
    if (reply->status == -EOPNOTSUPP)
      api_error(r, 403, "this server keeps no network log: set network_log to names or full");
    else
      sandbox_refused(r, reply);
    return;
  }
  if (fd >= 0)
    logring_read(fd, RING_READ, &s->ring);
  s->rest = buf_str(&s->ring);
  log_scan_read(&s->scan);
}

static void request(struct log_scan *scan)
{
  struct net_scan *s = scan_of(scan);
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_BOX_NET_LOG, 0, 0);
  wire_put(&b, W_ID, s->id);
  wire_putz(&b, W_TEAM, s->r->team.id);
  api_call_warden(s->r, &b, NULL, got_ring);
}

static const struct log_scan_ops ring_ops = {request, step, drop_ring, answer};
static struct log_scans scans = LOG_SCANS_INIT(&ring_ops);

static void scan_drop(struct req *r)
{
  struct net_scan *s = r->state;
  void *value;
  log_scan_end(&s->scan);
  buf_free(&s->out);
  for (size_t i = 0; map_next(&s->ends, &i, NULL, &value);)
    free(value);
  map_free(&s->ends);
  free(s);
}

void sandbox_network_log(struct req *r)
{
  struct str id;
  int64_t from = 0, to = INT64_MAX;
  uint64_t limit;
  if (!api_ms(r, "start", &from) || !api_ms(r, "end", &to) || !api_limit(r, LIMIT, &limit) || !api_box_id(r, &id))
    return;
  struct net_scan *s = xcalloc(1, sizeof(*s));
  *s = (struct net_scan){.r = r,
                         .id = id,
                         .limit = limit,
                         .from_us = from,
                         .to_us = to,
                         .ring = BUF_INIT(RING_READ),
                         .out = BUF_INIT(2 * OUT_MOST)};
  r->state = s;
  r->drop = scan_drop;
  log_scan_begin(&scans, &s->scan, r);
}
