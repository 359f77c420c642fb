/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_logs.c - GET /sandboxes/{id}/logs and /v2/sandboxes/{id}/logs: the box's log ring, read through a descriptor
 * the warden hands over, filtered and put into the shapes of both generations. Lines are the box's own words: what is
 * no entry is left out.
 *
 * The box's root may write there what is most work to read, so that work is bounded for everyone else. No more is read
 * than the server lets a ring hold; lines are looked at from the requested end and only until enough are found; and
 * rings are in memory and looked at as log_scan.h says. */
#include "wire/log_entry.h"
#include "gate/api/log_scan.h"
#include "wire/logring.h"

#include <stdio.h>

#define LOGS_READ  ((size_t)8 << 20)
#define LOGS_LIMIT 1000
#define OUT_MOST   ((size_t)8 << 20) /* of an answer; what is beyond is left for the next request */
#define SEARCH_MAX 256
#define WINDOW_US  ((int64_t)7 * 24 * 3600 * 1000000)

struct log_query {
  bool v2, backward;
  struct str id;
  uint64_t limit;
  int64_t from_us, to_us;
  int level; /* at least */
  struct str search;
  struct ring_scan *scan;
};

/* ---- reading the ring ---- */

static bool matches(const struct log_query *w, const struct log_entry *e)
{
  return e->at_us >= w->from_us && e->at_us <= w->to_us && log_level_of(str_of(e->level)) >= w->level &&
         (!w->search.n || str_search(e->message, w->search) >= 0);
}

/* ---- rings being looked at ---- */

struct ring_scan {
  struct log_scan scan; /* first: see scan_of */
  struct req *r;
  struct buf ring; /* rest is what was not looked at yet */
  struct str rest;
  struct buf logs, entries; /* the answer's parts so far */
  struct jw lw, ew;
  uint64_t taken;
};

static struct ring_scan *scan_of(struct log_scan *s)
{
  return (struct ring_scan *)s;
}

/* The last line, or the first. */
static struct str next_line(struct ring_scan *s)
{
  const struct log_query *log_query = s->r->state;
  struct str line;
  if (!log_query->backward) {
    str_cut(s->rest, '\n', &line, &s->rest);
    return line;
  }
  struct str body = str_sub(s->rest, 0, s->rest.n - 1); /* all lines are whole */
  ptrdiff_t before = str_rfind(body, '\n');
  line = str_skip(body, (size_t)(before + 1));
  s->rest = str_sub(s->rest, 0, (size_t)(before + 1));
  return line;
}

static void take_line(struct ring_scan *s, struct str line)
{
  const struct log_query *log_query = s->r->state;
  cleanup_arena struct arena arena = ARENA_INIT((size_t)64 * LOG_LINE_MOST);
  struct log_entry e;
  if (!line.n || line.n > LOG_LINE_MOST || !log_entry_read(&arena, line, &e) || !matches(log_query, &e))
    return;
  s->taken++;
  if (!log_query->v2)
    log_entry_put_line(&s->lw, &e);
  log_entry_put(&s->ew, &e);
}

static bool has_more(const struct ring_scan *s)
{
  const struct log_query *log_query = s->r->state;
  return s->rest.n && s->taken < log_query->limit && s->logs.n + s->entries.n < OUT_MOST;
}

static bool step(struct log_scan *scan)
{
  struct ring_scan *s = scan_of(scan);
  if (has_more(s))
    take_line(s, next_line(s));
  return has_more(s);
}

static void answer(struct log_scan *scan)
{
  struct ring_scan *s = scan_of(scan);
  const struct log_query *log_query = s->r->state;
  jw_close(&s->lw, ']');
  jw_close(&s->ew, ']');
  cleanup_buf struct buf b = BUF_INIT(4 * OUT_MOST);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "logs");
  jw_raw(&w, log_query->v2 ? buf_str(&s->entries) : buf_str(&s->logs));
  if (!log_query->v2) {
    jw_key(&w, "logEntries");
    jw_raw(&w, buf_str(&s->entries));
  }
  jw_close(&w, '}');
  if (buf_failed(&b) || buf_failed(&s->logs) || buf_failed(&s->entries))
    api_error(s->r, 500, "the logs are too large for one response; request fewer");
  else
    api_json(s->r, 200, buf_str(&b));
  buf_free(&s->logs); /* the client may take its time */
  buf_free(&s->entries);
}

static void drop_ring(struct log_scan *s)
{
  buf_free(&scan_of(s)->ring);
}

static void got_ring(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct ring_scan *s = ((struct log_query *)r->state)->scan;
  cleanup_fd int fd = reply->fd;
  r->pending_call = 0;
  if (reply->status) {
    log_scan_end(&s->scan);
    sandbox_refused(r, reply);
    return;
  }
  if (fd >= 0)
    logring_read(fd, MIN(LOGS_READ, r->gate->config->log_bytes), &s->ring);
  s->rest = buf_str(&s->ring);
  log_scan_read(&s->scan);
}

static void request(struct log_scan *s)
{
  struct req *r = scan_of(s)->r;
  const struct log_query *log_query = r->state;
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_BOX_LOG, 0, 0);
  wire_put(&b, W_ID, log_query->id);
  wire_putz(&b, W_TEAM, r->team.id);
  api_call_warden(r, &b, NULL, got_ring);
}

static const struct log_scan_ops ring_ops = {request, step, drop_ring, answer};
static struct log_scans scans = LOG_SCANS_INIT(&ring_ops);

static void scan_drop(struct req *r)
{
  struct ring_scan *s = ((struct log_query *)r->state)->scan;
  log_scan_end(&s->scan);
  buf_free(&s->logs);
  buf_free(&s->entries);
  free(s);
}

/* ---- requests ---- */

static void request_ring(struct req *r, struct log_query *w)
{
  if (!api_box_id(r, &w->id))
    return;
  struct ring_scan *s = xcalloc(1, sizeof(*s));
  *s = (struct ring_scan){
      .r = r, .ring = BUF_INIT(LOGS_READ), .logs = BUF_INIT(4 * OUT_MOST), .entries = BUF_INIT(4 * OUT_MOST)};
  s->lw = JW(&s->logs);
  s->ew = JW(&s->entries);
  jw_open(&s->lw, '[');
  jw_open(&s->ew, '[');
  w->scan = s;
  r->state = w;
  r->drop = scan_drop;
  log_scan_begin(&scans, &s->scan, r);
}

static struct log_query *log_query_new(struct req *r)
{
  struct log_query *w = arena_alloc(r->arena, sizeof(*w));
  w->from_us = clock_wall_us() - WINDOW_US;
  w->to_us = INT64_MAX;
  return w;
}

void sandbox_logs_v1(struct req *r)
{
  struct log_query *w = log_query_new(r);
  if (api_ms(r, "start", &w->from_us) && api_limit(r, LOGS_LIMIT, &w->limit))
    request_ring(r, w);
}

static bool want_direction(struct req *r, struct log_query *w)
{
  struct str direction = api_query(r, "direction");
  w->backward = !direction.n || str_is(direction, "backward");
  if (w->backward || str_is(direction, "forward"))
    return true;
  api_error(r, 400, "'direction' may be forward or backward, not '" STR_FMT "'", STR_ARG(str_sub(direction, 0, 100)));
  return false;
}

static bool want_filters(struct req *r, struct log_query *w)
{
  struct str level = api_query(r, "level");
  w->search = api_query(r, "search");
  w->level = level.n ? log_level_of(level) : 0;
  if (w->level < 0)
    api_error(r, 400, "'level' may be debug, info, warn or error, not '" STR_FMT "'", STR_ARG(str_sub(level, 0, 100)));
  else if (w->search.n > SEARCH_MAX)
    api_error(r, 400, "'search' may have %d bytes", SEARCH_MAX);
  return !r->answered;
}

void sandbox_logs_v2(struct req *r)
{
  struct log_query *w = log_query_new(r);
  w->v2 = true;
  if (want_direction(r, w) && want_filters(r, w) && api_limit(r, LOGS_LIMIT, &w->limit) &&
      api_ms(r, "cursor", w->backward ? &w->to_us : &w->from_us))
    request_ring(r, w);
}
