/* sandbox_logs.c - GET /sandboxes/{id}/logs and /v2/sandboxes/{id}/logs: the box's log ring, read through a descriptor the
 * warden hands over, filtered and put into the shapes of both generations. Lines are the box's own words: what is no entry
 * is left out. */
#include "gate/api.h"
#include "wire/logring.h"

#include <stdio.h>

#define LOGS_READ  ((size_t)8 << 20)
#define LOGS_LIMIT 1000
#define SEARCH_MAX 256
#define WINDOW_US  ((int64_t)7 * 24 * 3600 * 1000000)

static const char *const levels[] = {"debug", "info", "warn", "error"};

struct entry {
  int64_t at_us;
  const char *level;
  struct str message;
  const struct json *line;
};

struct wish {
  bool v2, backward;
  uint64_t limit;
  int64_t from_us, to_us;
  int level; /* at least */
  struct str search;
};

/* ---- reading the ring ---- */

static int level_of(struct str word)
{
  for (int i = 0; i < (int)ARRAY_LEN(levels); i++)
    if (str_ieq(word, str_of(levels[i])))
      return i;
  return -1;
}

static bool read_entry(struct arena *a, struct str text, struct entry *e)
{
  e->line = json_read(a, text, JSON_REPAIR_UTF8, NULL);
  int level = level_of(json_text(json_get(e->line, "l"), STR("info")));
  if (!json_is(e->line, JSON_OBJECT) || json_int(json_get(e->line, "t"), &e->at_us) || level < 0)
    return false;
  e->level = levels[level];
  e->message = json_text(json_get(e->line, "m"), STR(""));
  return true;
}

static bool matches(const struct wish *w, const struct entry *e)
{
  return e->at_us >= w->from_us && e->at_us <= w->to_us && level_of(str_of(e->level)) >= w->level &&
         (!w->search.n || str_search(e->message, w->search) >= 0);
}

/* ---- writing ---- */

static void put_time(struct jw *w, int64_t us)
{
  char text[CLOCK_TEXT];
  clock_text(us, text);
  jw_key(w, "timestamp");
  jw_z(w, text);
}

/* Everything but time, level and message, as strings. */
static void put_fields(struct jw *w, const struct entry *e)
{
  for (const struct json *k = e->line->kids; k; k = k->next) {
    if (k->type != JSON_STRING || str_is(k->key, "l") || str_is(k->key, "m"))
      continue;
    jw_keys(w, str_is(k->key, "g") ? STR("logger") : k->key);
    jw_str(w, k->text);
  }
}

static void put_entry(struct jw *w, const struct entry *e)
{
  jw_open(w, '{');
  put_time(w, e->at_us);
  jw_key(w, "level");
  jw_z(w, e->level);
  jw_key(w, "message");
  jw_str(w, e->message);
  jw_key(w, "fields");
  jw_open(w, '{');
  put_fields(w, e);
  jw_close(w, '}');
  jw_close(w, '}');
}

/* The first generation's line is itself the text of a JSON object. */
static void put_line(struct jw *w, const struct entry *e)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  struct jw line = JW(&b);
  jw_open(&line, '{');
  jw_key(&line, "level");
  jw_z(&line, e->level);
  jw_key(&line, "message");
  jw_str(&line, e->message);
  put_fields(&line, e);
  jw_close(&line, '}');
  jw_open(w, '{');
  put_time(w, e->at_us);
  jw_key(w, "line");
  jw_str(w, buf_str(&b));
  jw_close(w, '}');
}

/* Oldest first, or newest first when asked for; `limit` of them. */
static void tell(struct req *r, struct entry *list, size_t n)
{
  const struct wish *wish = r->state;
  cleanup_buf struct buf logs = BUF_INIT((size_t)64 << 20), entries = BUF_INIT((size_t)64 << 20);
  struct jw lw = JW(&logs), ew = JW(&entries);
  jw_open(&lw, '[');
  jw_open(&ew, '[');
  for (size_t i = 0; i < MIN(n, (size_t)wish->limit); i++) {
    const struct entry *e = &list[wish->backward ? n - 1 - i : i];
    if (!wish->v2)
      put_line(&lw, e);
    put_entry(&ew, e);
  }
  jw_close(&lw, ']');
  jw_close(&ew, ']');
  cleanup_buf struct buf b = BUF_INIT((size_t)128 << 20);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "logs");
  jw_raw(&w, wish->v2 ? buf_str(&entries) : buf_str(&logs));
  if (!wish->v2) {
    jw_key(&w, "logEntries");
    jw_raw(&w, buf_str(&entries));
  }
  jw_close(&w, '}');
  if (buf_failed(&b))
    api_error(r, 500, "the logs are too large to be told at once; ask for fewer");
  else
    api_json(r, 200, buf_str(&b));
}

static void got_ring(const struct answer *a, void *arg)
{
  struct req *r = arg;
  cleanup_fd int fd = a->fd;
  if (sandbox_refused(r, a))
    return;
  const struct wish *wish = r->state;
  cleanup_buf struct buf ring = BUF_INIT(LOGS_READ);
  cleanup_arena struct arena arena = ARENA_INIT((size_t)256 << 20);
  VEC(struct entry) list = {0};
  if (fd >= 0)
    logring_read(fd, LOGS_READ, &ring);
  struct str rest = buf_str(&ring), line;
  while (rest.n) {
    struct entry e;
    str_cut(rest, '\n', &line, &rest);
    if (line.n && read_entry(&arena, line, &e) && matches(wish, &e))
      vec_push(&list, e);
  }
  tell(r, list.p, list.n);
  vec_free(&list);
}

/* ---- asking ---- */

static void ask_ring(struct req *r, struct wish *w)
{
  struct str id;
  if (!api_box_id(r, &id))
    return;
  r->state = w;
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_BOX_LOG, 0, 0);
  wire_put(&b, W_ID, id);
  wire_putz(&b, W_TEAM, r->team.id);
  api_ask(r, &b, NULL, got_ring);
}

static bool want_ms(struct req *r, const char *name, int64_t *us)
{
  struct str text = api_query(r, name);
  int64_t ms;
  if (!text.n)
    return true;
  if (str_i64(text, &ms) || ms < 0 || ms > INT64_MAX / 1000) {
    api_error(r, 400, "'%s' must be whole milliseconds since 1970, not '" STR_FMT "'", name, STR_ARG(str_sub(text, 0, 100)));
    return false;
  }
  *us = ms * 1000;
  return true;
}

static struct wish *wish_new(struct req *r)
{
  struct wish *w = arena_alloc(r->arena, sizeof(*w));
  w->from_us = clock_wall_us() - WINDOW_US;
  w->to_us = INT64_MAX;
  return w;
}

void sandbox_logs_v1(struct req *r)
{
  struct wish *w = wish_new(r);
  if (want_ms(r, "start", &w->from_us) && api_limit(r, LOGS_LIMIT, &w->limit))
    ask_ring(r, w);
}

static bool want_direction(struct req *r, struct wish *w)
{
  struct str direction = api_query(r, "direction");
  w->backward = !direction.n || str_is(direction, "backward");
  if (w->backward || str_is(direction, "forward"))
    return true;
  api_error(r, 400, "'direction' may be forward or backward, not '" STR_FMT "'", STR_ARG(str_sub(direction, 0, 100)));
  return false;
}

static bool want_filters(struct req *r, struct wish *w)
{
  struct str level = api_query(r, "level");
  w->search = api_query(r, "search");
  w->level = level.n ? level_of(level) : 0;
  if (w->level < 0)
    api_error(r, 400, "'level' may be debug, info, warn or error, not '" STR_FMT "'", STR_ARG(str_sub(level, 0, 100)));
  else if (w->search.n > SEARCH_MAX)
    api_error(r, 400, "'search' may have %d bytes", SEARCH_MAX);
  return !r->answered;
}

void sandbox_logs_v2(struct req *r)
{
  struct wish *w = wish_new(r);
  w->v2 = true;
  if (want_direction(r, w) && want_filters(r, w) && api_limit(r, LOGS_LIMIT, &w->limit) &&
      want_ms(r, "cursor", w->backward ? &w->to_us : &w->from_us))
    ask_ring(r, w);
}
