/* SPDX-License-Identifier: Apache-2.0 */
/* build_logs.c - a build's status and log. The log is a file that the warden hands over, read in slices (log_scan.h).
 */
#include "gate/api/log_scan.h"
#include "wire/buildlog.h"

#define PAGE_MOST 100

/* ---- records ---- */

static const char *const levels[] = {"debug", "info", "warn", "error"};

/* Which records are wanted, and where they go. */
struct page {
  struct jw w;
  int level;
  const char *step; /* NULL: of any */
  int64_t from_us;  /* 0: from the beginning */
  uint64_t skip, left;
};

static void put_entry(struct jw *w, const struct buildlog_head *h, struct str message)
{
  char text[CLOCK_TEXT];
  clock_text(h->wall_us, text);
  jw_open(w, '{');
  jw_key(w, "timestamp");
  jw_z(w, text);
  jw_key(w, "message");
  jw_str(w, message);
  jw_key(w, "level");
  jw_z(w, levels[MIN(h->level, ARRAY_LEN(levels) - 1)]);
  if (h->step[0]) {
    jw_key(w, "step");
    jw_z(w, h->step);
  }
  jw_close(w, '}');
}

static int page_take(const struct buildlog_head *h, struct str message, void *arg)
{
  struct page *p = arg;
  if (h->level < p->level || h->wall_us < p->from_us || (p->step && strcmp(p->step, h->step)))
    return 0;
  if (p->skip) {
    p->skip--;
    return 0;
  }
  if (!p->left)
    return 1;
  put_entry(&p->w, h, message);
  return --p->left == 0;
}

/* `level`, `limit`; answers 400 itself. */
static bool page_read(struct req *r, struct page *p)
{
  struct str level = api_query(r, "level");
  if (!api_limit(r, PAGE_MOST, &p->left))
    return false;
  for (size_t i = 0; level.n && i < ARRAY_LEN(levels); i++)
    if (str_ieq(level, str_of(levels[i]))) {
      p->level = (int)i;
      return true;
    }
  if (level.n)
    api_error(r, 400, "'level' may be debug, info, warn or error, not '" STR_FMT "'", STR_ARG(str_sub(level, 0, 100)));
  return !level.n;
}

struct count {
  int level;
  int64_t to_us;
  uint64_t n;
};

static int count_take(const struct buildlog_head *h, struct str message, void *arg)
{
  struct count *c = arg;
  c->n += h->level >= c->level && h->wall_us <= c->to_us;
  return 0;
}

/* ---- logs being read ---- */

/* Once through the log. */
struct pass {
  int (*take)(const struct buildlog_head *h, struct str message, void *arg); /* NULL: none */
  void *arg;
};

struct build_scan {
  struct log_scan scan; /* first: see scan_of */
  struct req *r;
  enum scan_kind { SCAN_STATUS, SCAN_LOG, SCAN_LOG_BACK } kind;
  struct buf request, reply;
  int fd;
  uint64_t at;
  struct pass passes[2];
  size_t pass;
  struct page page, warnings; /* warnings: of the step that failed */
  struct count count;
  struct buf lines, warning_lines;
  char step[16];
};

static struct build_scan *scan_of(struct log_scan *s)
{
  return (struct build_scan *)s;
}

static void close_log(struct log_scan *scan)
{
  struct build_scan *s = scan_of(scan);
  if (s->fd >= 0)
    close(steal_fd(&s->fd));
}

static void scan_drop(struct req *r)
{
  struct build_scan *s = r->state;
  log_scan_end(&s->scan);
  buf_free(&s->request);
  buf_free(&s->reply);
  buf_free(&s->lines);
  buf_free(&s->warning_lines);
  free(s);
}

static void put_reason(struct build_scan *s, struct jw *w)
{
  jw_key(w, "reason");
  jw_open(w, '{');
  jw_key(w, "message");
  jw_str(w, wire_get(buf_str(&s->reply), W_MESSAGE));
  if (s->step[0]) {
    jw_key(w, "step");
    jw_z(w, s->step);
  }
  jw_key(w, "logEntries");
  jw_raw(w, buf_str(&s->warning_lines));
  jw_close(w, '}');
}

static uint64_t state_of(const struct build_scan *s)
{
  return MIN(wire_u64(buf_str(&s->reply), W_STATE, 0), (uint64_t)JOB_READY);
}

static void put_status(struct build_scan *s, struct jw *w)
{
  static const char *const names[] = {"", "waiting", "building", "error", "ready"};
  jw_key(w, "templateID");
  jw_str(w, wire_get(buf_str(&s->reply), W_TEMPLATE));
  jw_key(w, "buildID");
  jw_str(w, s->r->second);
  jw_key(w, "status");
  jw_z(w, names[state_of(s)]);
  jw_key(w, "logEntries");
  jw_raw(w, buf_str(&s->lines));
  jw_key(w, "logs");
  jw_raw(w, STR("[]"));
  if (state_of(s) == JOB_ERROR)
    put_reason(s, w);
}

static void answer(struct log_scan *scan)
{
  struct build_scan *s = scan_of(scan);
  cleanup_buf struct buf b = BUF_INIT(16 << 20);
  struct jw w = JW(&b);
  jw_close(&s->page.w, ']');
  jw_close(&s->warnings.w, ']');
  jw_open(&w, '{');
  if (s->kind == SCAN_STATUS) {
    put_status(s, &w);
  } else {
    jw_key(&w, "logs");
    jw_raw(&w, buf_str(&s->lines));
  }
  jw_close(&w, '}');
  buf_free(&s->lines); /* the client may take its time */
  buf_free(&s->warning_lines);
  api_json(s->r, 200, buf_str(&b));
}

/* The newest before the cursor were counted: all but the last ones are skipped. */
static void turn_back(struct build_scan *s)
{
  struct page *p = &s->page;
  uint64_t n = s->count.n;
  p->from_us = 0;
  p->skip = n > p->left ? n - p->left : 0;
  p->left = MIN(p->left, n);
}

/* A piece of the log. */
static bool step(struct log_scan *scan)
{
  struct build_scan *s = scan_of(scan);
  if (s->fd < 0 || s->pass == ARRAY_LEN(s->passes) || !s->passes[s->pass].take)
    return false;
  const struct pass *pass = &s->passes[s->pass];
  if (buildlog_step(s->fd, &s->at, pass->take, pass->arg) > 0)
    return true;
  if (pass->take == count_take)
    turn_back(s);
  s->pass++;
  s->at = 0;
  return true;
}

/* The state was told before the log is read here, so the last lines are never missed. */
static void told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct build_scan *s = r->state;
  r->pending_call = 0;
  s->fd = reply->fd;
  if (reply->status) {
    log_scan_end(&s->scan);
    if (reply->status == -ENOENT && s->kind == SCAN_STATUS)
      api_error(r, 400, STR_FMT, STR_ARG(wire_get(reply->packet, W_MESSAGE)));
    else
      api_warden_error(r, reply);
    return;
  }
  buf_adds(&s->reply, reply->packet);
  if (s->kind == SCAN_STATUS && state_of(s) == JOB_ERROR) {
    wire_copyz(reply->packet, W_STEP, s->step, sizeof(s->step));
    s->passes[1] = (struct pass){page_take, &s->warnings};
  }
  log_scan_read(&s->scan);
}

static void request(struct log_scan *scan)
{
  struct build_scan *s = scan_of(scan);
  api_call_warden(s->r, &s->request, NULL, told);
}

static const struct log_scan_ops build_log_ops = {request, step, close_log, answer};
static struct log_scans scans = LOG_SCANS_INIT(&build_log_ops);

static void scan_begin(struct req *r, const struct page *p, enum scan_kind kind)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  if (!build_call_about(r, &b, WIRE_BUILD_GET))
    return;
  struct build_scan *s = xcalloc(1, sizeof(*s));
  *s = (struct build_scan){.r = r,
                           .kind = kind,
                           .fd = -1,
                           .page = *p,
                           .request = BUF_INIT(8192),
                           .reply = BUF_INIT(WIRE_MAX),
                           .lines = BUF_INIT(8 << 20),
                           .warning_lines = BUF_INIT(4 << 20)};
  buf_adds(&s->request, buf_str(&b));
  s->warnings = (struct page){.level = LOG_WARN, .step = s->step, .left = PAGE_MOST};
  s->page.w = JW(&s->lines);
  s->warnings.w = JW(&s->warning_lines);
  jw_open(&s->page.w, '[');
  jw_open(&s->warnings.w, '[');
  s->count = (struct count){.level = p->level, .to_us = p->from_us ? p->from_us : INT64_MAX};
  if (kind == SCAN_LOG_BACK)
    s->passes[0] = (struct pass){count_take, &s->count};
  s->passes[kind == SCAN_LOG_BACK] = (struct pass){page_take, &s->page};
  r->state = s;
  r->drop = scan_drop;
  log_scan_begin(&scans, &s->scan, r);
}

/* ---- requests ---- */

void build_status(struct req *r)
{
  struct page p = {0};
  struct str offset = api_query(r, "logsOffset");
  if (!page_read(r, &p))
    return;
  if (offset.n && str_u64(offset, &p.skip)) {
    api_error(r, 400, "'logsOffset' must be a whole number, not '" STR_FMT "'", STR_ARG(str_sub(offset, 0, 100)));
    return;
  }
  scan_begin(r, &p, SCAN_STATUS);
}

void build_logs(struct req *r)
{
  struct page p = {0};
  struct str cursor = api_query(r, "cursor"), direction = api_query(r, "direction");
  int64_t ms = 0;
  if (!page_read(r, &p))
    return;
  if ((cursor.n && (str_i64(cursor, &ms) || ms < 0 || ms > INT64_MAX / 1000)) ||
      (direction.n && !str_ieq(direction, STR("forward")) && !str_ieq(direction, STR("backward")))) {
    api_error(r, 400, "'cursor' must be milliseconds and 'direction' forward or backward");
    return;
  }
  p.from_us = ms * 1000;
  scan_begin(r, &p, str_ieq(direction, STR("backward")) ? SCAN_LOG_BACK : SCAN_LOG);
}
