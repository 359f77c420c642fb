/* SPDX-License-Identifier: Apache-2.0 */
/* tag_history.c - which builds the tags of a template were put on: how many tags there are, whether one is there, all
 * of them with their newest assignments, and all assignments of one. The warden sends the whole history of a template,
 * newest first; what is asked of it is chosen here. */
#include "gate/api/api.h"

#define TAGS_MOST         100
#define TAGS_USUAL        25
#define ASSIGNMENTS_MOST  25 /* of a group */
#define ASSIGNMENTS_USUAL 6
#define PAGE_MOST         100 /* assignments of one tag */
#define PAGE_USUAL        50
#define SEARCH_MOST       64

/* A tag and its assignments, which stand together in `events`, newest first. */
struct group {
  struct str tag;
  size_t at, n;
};

enum sort { LATEST_DESC, LATEST_ASC, NAME_ASC, NAME_DESC };
static const char *const sorts[] = {"latest_desc", "latest_asc", "name_asc", "name_desc"};

struct history {
  VEC(struct str) events; /* the warden's packets, in the arena */
  VEC(struct group) groups;
  struct str tag, search, cursor; /* what was asked for */
  enum sort sort;
  uint64_t limit, assignments;
  void (*tell)(struct req *r, struct history *h, struct jw *w);
};

/* ---- reading ---- */

static bool tag_char(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

static bool tag_text(struct str s, size_t most)
{
  for (size_t i = 0; i < s.n; i++)
    if (!tag_char(s.p[i]))
      return false;
  return s.n <= most;
}

/* Trimmed and lowered; empty when it is no tag. */
static struct str normal_tag(struct req *r, struct str text)
{
  cleanup_buf struct buf b = BUF_INIT(TAG_SIZE);
  text = str_trim(text);
  for (size_t i = 0; i < text.n; i++)
    buf_addc(&b, text.p[i] >= 'A' && text.p[i] <= 'Z' ? (char)(text.p[i] + 32) : text.p[i]);
  if (buf_failed(&b) || !tag_text(buf_str(&b), TAG_SIZE - 1) || uuid_valid(buf_str(&b)))
    return STR("");
  return arena_str(r->arena, buf_str(&b));
}

static bool want_tag(struct req *r, struct history *h, struct str text)
{
  h->tag = normal_tag(r, text);
  if (!h->tag.n)
    api_error(r, 400, "'" STR_FMT "' is not a tag: up to %d of a-z 0-9 _ . - and no UUID",
              STR_ARG(str_sub(text, 0, 200)), TAG_SIZE - 1);
  return h->tag.n > 0;
}

static void found(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct history *h = r->state;
  struct str row = arena_str(r->arena, reply->packet);
  if (row.p)
    vec_push(&h->events, row);
}

static struct str tag_of(struct str event)
{
  return wire_get(event, W_TAG);
}

static int64_t time_of(struct str event)
{
  return (int64_t)wire_u64(event, W_CREATED, 0);
}

/* By tag, then newest first, equal times by id. */
static int event_order(const void *a, const void *b)
{
  const struct str *x = a, *y = b;
  int order = str_cmp(tag_of(*x), tag_of(*y));
  if (order)
    return order;
  if (time_of(*x) != time_of(*y))
    return time_of(*x) < time_of(*y) ? 1 : -1;
  return str_cmp(wire_get(*x, W_ID), wire_get(*y, W_ID));
}

static void find_groups(struct history *h)
{
  if (h->events.n)
    qsort(h->events.p, h->events.n, sizeof(*h->events.p), event_order);
  for (size_t i = 0; i < h->events.n; i++) {
    struct str tag = tag_of(h->events.p[i]);
    struct group *last = h->groups.n ? &h->groups.p[h->groups.n - 1] : NULL;
    if (last && str_eq(last->tag, tag))
      last->n++;
    else
      vec_push(&h->groups, ((struct group){tag, i, 1}));
  }
}

static struct group *group_of(struct history *h)
{
  for (size_t i = 0; i < h->groups.n; i++)
    if (str_eq(h->groups.p[i].tag, h->tag))
      return &h->groups.p[i];
  return NULL;
}

/* ---- telling ---- */

static void put_time(struct jw *w, const char *name, uint64_t us)
{
  char text[CLOCK_TEXT];
  clock_text((int64_t)us, text);
  jw_key(w, name);
  jw_z(w, text);
}

static void put_event(struct jw *w, struct str e)
{
  jw_open(w, '{');
  jw_key(w, "assignmentId");
  jw_str(w, wire_get(e, W_ID));
  jw_key(w, "buildId");
  jw_str(w, wire_get(e, W_BUILD));
  put_time(w, "assignedAt", wire_u64(e, W_CREATED, 0));
  put_time(w, "buildCreatedAt", wire_u64(e, W_STARTED, 0));
  put_time(w, "buildFinishedAt", wire_u64(e, W_END, 0));
  jw_close(w, '}');
}

/* `plain` NULL: there is no more. */
static void put_cursor(struct jw *w, const struct buf *plain)
{
  cleanup_buf struct buf token = BUF_INIT(1024);
  jw_key(w, "nextCursor");
  if (!plain) {
    jw_null(w);
    return;
  }
  api_token_add(&token, buf_str(plain));
  jw_str(w, buf_str(&token));
}

static void tell_count(struct req *r, struct history *h, struct jw *w)
{
  jw_key(w, "total");
  jw_uint(w, h->groups.n);
}

static void tell_exists(struct req *r, struct history *h, struct jw *w)
{
  jw_key(w, "exists");
  jw_bool(w, group_of(h) != NULL);
  jw_key(w, "normalizedTag");
  jw_str(w, h->tag);
}

/* The cursor is the id of the last one shown. */
static void tell_assignments(struct req *r, struct history *h, struct jw *w)
{
  struct group *g = group_of(h);
  cleanup_buf struct buf plain = BUF_INIT(256);
  size_t i = 0, n = g ? g->n : 0, shown = 0;
  const struct str *events = g ? h->events.p + g->at : NULL;
  for (size_t k = 0; h->cursor.n && k < n; k++)
    if (str_eq(wire_get(events[k], W_ID), h->cursor))
      i = k + 1;
  jw_key(w, "data");
  jw_open(w, '[');
  for (; i < n && shown < h->limit; i++, shown++)
    put_event(w, events[i]);
  jw_close(w, ']');
  if (i < n && i)
    buf_adds(&plain, wire_get(events[i - 1], W_ID));
  put_cursor(w, i < n ? &plain : NULL);
}

/* Groups have different names, so that every order is a strict one. */
static int group_order(const struct history *h, const struct group *a, const struct group *b)
{
  int64_t x = time_of(h->events.p[a->at]), y = time_of(h->events.p[b->at]);
  int name = str_cmp(a->tag, b->tag);
  if (h->sort == NAME_ASC || h->sort == NAME_DESC || x == y)
    return h->sort == NAME_DESC ? -name : name;
  return (x < y) == (h->sort == LATEST_DESC) ? 1 : -1;
}

static int sort_order(const void *a, const void *b, void *arg)
{
  return group_order(arg, a, b);
}

/* A cursor: the sort, the tag that was shown last and the time it had then. Tags that moved since are not told twice in
 * the order of names; in the order of time they are where they are now. */
static bool is_behind(const struct history *h, const struct group *g)
{
  struct str sort, rest, when, tag;
  int64_t us = 0;
  if (!h->cursor.n)
    return true;
  str_cut(h->cursor, ' ', &sort, &rest);
  str_cut(rest, ' ', &when, &tag);
  int name = str_cmp(g->tag, tag);
  int64_t own = time_of(h->events.p[g->at]);
  if (str_i64(when, &us) || h->sort == NAME_ASC || h->sort == NAME_DESC || own == us)
    return h->sort == NAME_DESC ? name < 0 : name > 0;
  return h->sort == LATEST_DESC ? own < us : own > us;
}

static void put_group(struct history *h, const struct group *g, struct jw *w)
{
  jw_open(w, '{');
  jw_key(w, "tag");
  jw_str(w, g->tag);
  jw_key(w, "assignments");
  jw_open(w, '[');
  for (size_t i = 0; i < g->n && i < h->assignments; i++)
    put_event(w, h->events.p[g->at + i]);
  jw_close(w, ']');
  jw_key(w, "hasMore");
  jw_bool(w, g->n > h->assignments);
  jw_close(w, '}');
}

static void tell_groups(struct req *r, struct history *h, struct jw *w)
{
  cleanup_buf struct buf plain = BUF_INIT(512);
  const struct group *last = NULL;
  size_t shown = 0;
  bool more = false;
  if (h->groups.n)
    qsort_r(h->groups.p, h->groups.n, sizeof(*h->groups.p), sort_order, h);
  jw_key(w, "tags");
  jw_open(w, '[');
  for (size_t i = 0; i < h->groups.n && !more; i++) {
    const struct group *g = &h->groups.p[i];
    if ((h->search.n && str_search(g->tag, h->search) < 0) || !is_behind(h, g))
      continue;
    more = shown == h->limit;
    if (more)
      break;
    put_group(h, g, w);
    last = g;
    shown++;
  }
  jw_close(w, ']');
  if (more && last)
    buf_addf(&plain, "%s %lld " STR_FMT, sorts[h->sort], (long long)time_of(h->events.p[last->at]), STR_ARG(last->tag));
  put_cursor(w, more ? &plain : NULL);
}

/* ---- the way there ---- */

static void told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct history *h = r->state;
  r->pending_call = 0;
  if (reply->status) {
    api_warden_error(r, reply);
    return;
  }
  find_groups(h);
  cleanup_buf struct buf b = BUF_INIT((size_t)16 << 20);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  h->tell(r, h, &w);
  jw_close(&w, '}');
  api_json(r, 200, buf_str(&b));
}

static void drop(struct req *r)
{
  struct history *h = r->state;
  vec_free(&h->events);
  vec_free(&h->groups);
}

static struct history *history_new(struct req *r, void (*tell)(struct req *, struct history *, struct jw *))
{
  struct history *h = arena_alloc(r->arena, sizeof(*h));
  h->tell = tell;
  return h;
}

static void ask(struct req *r, struct history *h)
{
  cleanup_buf struct buf b = BUF_INIT(8192);
  r->state = h;
  r->drop = drop;
  wire_begin(&b, WIRE_TAG_HISTORY, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put(&b, W_REF, r->id);
  api_call_warden_list(r, &b, found, told);
}

void tag_count(struct req *r)
{
  ask(r, history_new(r, tell_count));
}

void tag_exists(struct req *r)
{
  struct history *h = history_new(r, tell_exists);
  if (want_tag(r, h, api_query(r, "tag")))
    ask(r, h);
}

void tag_assignments(struct req *r)
{
  struct history *h = history_new(r, tell_assignments);
  if (!want_tag(r, h, r->second) || !api_limit_named(r, "limit", PAGE_MOST, PAGE_USUAL, &h->limit) ||
      !api_token_named(r, "cursor", &h->cursor))
    return;
  if (h->cursor.n && !uuid_valid(h->cursor))
    api_error(r, 400, "'cursor' is not a token of this listing");
  else
    ask(r, h);
}

static bool want_sort(struct req *r, struct history *h)
{
  struct str text = api_query(r, "sort");
  for (size_t i = 0; text.n && i < ARRAY_LEN(sorts); i++)
    if (str_is(text, sorts[i])) {
      h->sort = (enum sort)i;
      return true;
    }
  if (text.p)
    api_error(r, 400, "'sort' must be latest_desc, latest_asc, name_asc or name_desc, not '" STR_FMT "'",
              STR_ARG(str_sub(text, 0, 100)));
  return !text.p;
}

static bool want_search(struct req *r, struct history *h)
{
  h->search = api_query(r, "search");
  if (tag_text(h->search, SEARCH_MOST))
    return true;
  api_error(r, 400, "'search' must be at most %d of a-z 0-9 . _ -, not '" STR_FMT "'", SEARCH_MOST,
            STR_ARG(str_sub(h->search, 0, 100)));
  return false;
}

static bool want_cursor(struct req *r, struct history *h)
{
  struct str sort, rest, when, tag;
  int64_t us;
  if (!api_token_named(r, "tagsCursor", &h->cursor) || !h->cursor.n)
    return !r->answered;
  str_cut(h->cursor, ' ', &sort, &rest);
  str_cut(rest, ' ', &when, &tag);
  if (str_is(sort, sorts[h->sort]) && !str_i64(when, &us) && tag.n && tag_text(tag, TAG_SIZE - 1))
    return true;
  api_error(r, 400, "'tagsCursor' is not a token of this listing and order");
  return false;
}

void tag_groups(struct req *r)
{
  struct history *h = history_new(r, tell_groups);
  if (api_limit_named(r, "assignmentLimit", ASSIGNMENTS_MOST, ASSIGNMENTS_USUAL, &h->assignments) &&
      api_limit_named(r, "tagsLimit", TAGS_MOST, TAGS_USUAL, &h->limit) && want_sort(r, h) && want_search(r, h) &&
      want_cursor(r, h))
    ask(r, h);
}
