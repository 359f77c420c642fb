/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - GET /sandboxes and /v2/sandboxes: filters, order, pages.
 *
 * The warden gives all boxes of the team; metadata is JSON it never reads, so the choosing is done here. A page's token
 * is the sort key of its last row, so rows that come and go between two pages neither repeat nor hide others. */
#include "gate/api/api.h"
#include "gate/api/list_query.h"

#include <stdio.h>

#define ROWS_MAX ((size_t)64 << 20)

struct row {
  struct box_view v;
  const struct json *config;
};

/* Rows have an arena of their own: all boxes of a team may be megabytes, and a client may take its time to read a small
 * answer. */
struct listing {
  struct arena arena;
  VEC(struct row) rows;
  struct pair metadata[64];
  size_t nmetadata;
  struct str template;
  bool running, paused, ascending, paged;
  int64_t after_us;       /* startedAfter, inclusive; INT64_MIN = none */
  struct page_key cursor; /* rows behind this key; no id = all */
  uint64_t limit;
};

/* ---- reading the query ---- */

static bool read_metadata(struct req *r, struct listing *l)
{
  struct str text = api_query(r, "metadata");
  int n = text.n ? metadata_read(r->arena, text, l->metadata, ARRAY_LEN(l->metadata)) : 0;
  if (n < 0) {
    api_error(r, 400, "'metadata' must be key=value pairs joined by '&' (at most %zu)", ARRAY_LEN(l->metadata));
    return false;
  }
  l->nmetadata = (size_t)n;
  return true;
}

static bool read_states(struct req *r, struct listing *l)
{
  struct str rest = api_query(r, "state"), word;
  l->running = l->paused = !rest.n;
  while (rest.n) {
    str_cut(rest, ',', &word, &rest);
    if (str_is(word, "running"))
      l->running = true;
    else if (str_is(word, "paused"))
      l->paused = true;
    else {
      api_error(r, 400, "'state' may be running or paused, not '" STR_FMT "'", STR_ARG(word));
      return false;
    }
  }
  return true;
}

static bool read_create(struct req *r, struct listing *l)
{
  struct str order = api_query(r, "order"), after = api_query(r, "startedAfter");
  if (order.n && !str_is(order, "asc") && !str_is(order, "desc")) {
    api_error(r, 400, "'order' may be asc or desc, not '" STR_FMT "'", STR_ARG(order));
    return false;
  }
  l->ascending = str_is(order, "asc");
  l->after_us = INT64_MIN;
  if (after.n && clock_parse(after, &l->after_us)) {
    api_error(r, 400, "'startedAfter' must be an RFC 3339 time, not '" STR_FMT "'", STR_ARG(after));
    return false;
  }
  return api_limit(r, 100, &l->limit);
}

static bool read_token(struct req *r, struct listing *l)
{
  struct str plain;
  if (!api_token(r, &plain))
    return false;
  if (plain.n && page_key_read(plain, l->ascending, &l->cursor)) {
    api_error(r, 400, "'nextToken' is not a token of this listing and order");
    return false;
  }
  return true;
}

/* ---- choosing ---- */

static bool metadata_matches(const struct listing *l, const struct json *config)
{
  const struct json *have = json_get(config, "metadata");
  for (size_t i = 0; i < l->nmetadata; i++) {
    const struct json *found = NULL;
    for (const struct json *k = have ? have->kids : NULL; k; k = k->next)
      if (str_eq(k->key, l->metadata[i].key))
        found = k;
    if (!found || !str_eq(found->text, l->metadata[i].value))
      return false;
  }
  return true;
}

static struct page_key key_of(const struct row *row)
{
  return (struct page_key){row->v.started_us, row->v.id};
}

static int row_order(const void *a, const void *b)
{
  struct page_key x = key_of(a), y = key_of(b);
  return page_key_order(&x, &y);
}

static bool behind_cursor(const struct listing *l, const struct row *row)
{
  struct page_key k = key_of(row);
  int c = page_key_order(&k, &l->cursor);
  return !l->cursor.id.n || (l->ascending ? c < 0 : c > 0);
}

static bool wanted(const struct listing *l, const struct row *row)
{
  const struct box_view *v = &row->v;
  bool state = box_state_paused(v->state) ? l->paused : l->running;
  bool template = !l->template.n || str_eq(l->template, v->template_id) || str_ieq(l->template, v->alias);
  return state && template && v->started_us >= l->after_us && metadata_matches(l, row->config);
}

static void list_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct listing *l = r->state;
  struct row row;
  struct str packet = arena_str(&l->arena, reply->packet); /* rows outlive the packet */
  if (!packet.p)
    return;
  box_view(packet, &row.v);
  row.config = json_read(&l->arena, row.v.config, 0, NULL);
  if (wanted(l, &row))
    vec_push(&l->rows, row);
}

static void next_token(const struct listing *l, const struct row *last, struct buf *out)
{
  cleanup_buf struct buf plain = BUF_INIT(1024);
  struct page_key k = key_of(last);
  page_key_put(&plain, &k, l->ascending);
  api_token_add(out, buf_str(&plain));
}

static void drop_rows(struct req *r)
{
  struct listing *l = r->state;
  vec_free(&l->rows);
  arena_free(&l->arena);
}

static void list_done(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct listing *l = r->state;
  if (api_refused(r, reply))
    return;
  if (l->rows.n)
    qsort(l->rows.p, l->rows.n, sizeof(*l->rows.p), row_order);
  for (size_t i = 0; l->ascending && i < l->rows.n / 2; i++) {
    struct row t = l->rows.p[i];
    l->rows.p[i] = l->rows.p[l->rows.n - 1 - i];
    l->rows.p[l->rows.n - 1 - i] = t;
  }
  cleanup_buf struct buf b = BUF_INIT((size_t)64 << 20), token = BUF_INIT(1024);
  struct jw w = JW(&b);
  const struct row *last = NULL;
  uint64_t shown = 0, running = 0;
  jw_open(&w, '[');
  for (size_t i = 0; i < l->rows.n; i++) {
    struct row *row = &l->rows.p[i];
    running += !box_state_paused(row->v.state);
    if (!behind_cursor(l, row))
      continue;
    if (l->paged && shown == l->limit) {
      if (!token.n)
        next_token(l, last, &token);
      continue;
    }
    box_put_listed(&w, &row->v, row->config, false, r);
    last = row;
    shown++;
  }
  jw_close(&w, ']');
  char total[24];
  struct http_header h[2];
  size_t n = 0;
  if (l->paged && l->running)
    h[n++] = (struct http_header){STR("X-Total-Running"),
                                  {total, (size_t)snprintf(total, sizeof(total), "%llu", (unsigned long long)running)}};
  if (token.n)
    h[n++] = (struct http_header){STR("X-Next-Token"), buf_str(&token)};
  api_json_with(r, 200, buf_str(&b), h, n);
  drop_rows(r);
}

static void list(struct req *r, struct listing *l)
{
  l->arena = ARENA_INIT(ROWS_MAX);
  r->state = l;
  r->drop = drop_rows;
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_BOX_LIST, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  api_call_warden_list(r, &b, list_item, list_done);
}

void sandbox_list_v1(struct req *r)
{
  struct listing *l = arena_alloc(r->arena, sizeof(*l));
  *l = (struct listing){.running = true, .after_us = INT64_MIN};
  if (read_metadata(r, l))
    list(r, l);
}

void sandbox_list_v2(struct req *r)
{
  struct listing *l = arena_alloc(r->arena, sizeof(*l));
  l->paged = true;
  if (!read_metadata(r, l) || !read_states(r, l) || !read_create(r, l) || !read_token(r, l))
    return;
  l->template = api_query(r, "template");
  if (str_find(l->template, ':') >= 0) {
    api_error(r, 400, "'template' may not carry a tag: '" STR_FMT "'", STR_ARG(l->template));
    return;
  }
  struct str space, name;
  if (str_cut(l->template, '/', &space, &name))
    l->template = name;
  list(r, l);
}
