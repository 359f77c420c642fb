/* SPDX-License-Identifier: Apache-2.0 */
/* template_rows.c - see template_rows.h. */
#include "gate/api/template/template_rows.h"

#define LIMIT 100 /* of a page, and where none is asked for */

bool rows_page(struct req *r, struct rows *l)
{
  struct str token;
  l->paged = true;
  if (!api_limit(r, LIMIT, &l->limit) || !api_token(r, &token))
    return false;
  if (token.n && page_key_read(token, false, &l->cursor)) {
    api_error(r, 400, "'nextToken' is not a token of this listing");
    return false;
  }
  return true;
}

void rows_found(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct rows *l = r->state;
  bool wanted = !l->wanted || l->wanted(l, reply->packet);
  struct str *last = l->found.n ? &l->found.p[l->found.n - 1] : NULL;
  bool same = wanted && l->better && last && /* the warden sends the rows of one template together */
              str_eq(wire_get(*last, W_TEMPLATE), wire_get(reply->packet, W_TEMPLATE));
  if (!wanted || (same && !l->better(*last, reply->packet)))
    return;
  struct str row = arena_str(r->arena, reply->packet);
  if (row.p && same)
    *last = row;
  else if (row.p)
    vec_push(&l->found, row);
}

/* A build's row names no template. */
static struct page_key key_of(struct str row)
{
  struct str id = wire_get(row, W_TEMPLATE);
  return (struct page_key){(int64_t)wire_u64(row, W_CREATED, 0), id.n ? id : wire_get(row, W_BUILD)};
}

static int row_order(const void *a, const void *b)
{
  struct page_key x = key_of(*(const struct str *)a), y = key_of(*(const struct str *)b);
  int order = page_key_order(&x, &y);
  if (order)
    return order;
  struct str s = wire_get(*(const struct str *)a, W_TAG), t = wire_get(*(const struct str *)b, W_TAG);
  int same = s.n && t.n ? memcmp(s.p, t.p, MIN(s.n, t.n)) : 0;
  return same ? same : (s.n > t.n) - (s.n < t.n);
}

static int id_order(const void *a, const void *b)
{
  struct str x = wire_get(*(const struct str *)a, W_TEMPLATE), y = wire_get(*(const struct str *)b, W_TEMPLATE);
  int order = memcmp(x.p, y.p, MIN(x.n, y.n));
  return order ? order : (x.n > y.n) - (x.n < y.n);
}

/* Another tag of the same build as the row before: a page never ends between them. */
static bool twin(const struct rows *l, size_t i)
{
  if (!i)
    return false;
  struct page_key k = key_of(l->found.p[i]), last = key_of(l->found.p[i - 1]);
  return !page_key_order(&k, &last);
}

/* Returns the page's end where more is behind it, else no id. */
static struct page_key put_page(struct req *r, struct jw *w, const struct rows *l)
{
  struct page_key last = {0};
  uint64_t shown = 0;
  for (size_t i = 0; i < l->found.n; i++) {
    struct page_key k = key_of(l->found.p[i]);
    if (l->cursor.id.n && page_key_order(&k, &l->cursor) <= 0)
      continue;
    if (l->paged && shown >= l->limit && !twin(l, i))
      return last;
    l->put(r, w, l->found.p[i]);
    last = k;
    shown++;
  }
  return (struct page_key){0};
}

void rows_put(struct req *r, struct jw *w, struct rows *l, struct buf *token)
{
  cleanup_buf struct buf plain = BUF_INIT(256);
  if (l->found.n)
    qsort(l->found.p, l->found.n, sizeof(*l->found.p), l->by_id ? id_order : row_order);
  jw_open(w, '[');
  struct page_key end = put_page(r, w, l);
  jw_close(w, ']');
  if (!end.id.n)
    return;
  page_key_put(&plain, &end, false);
  api_token_add(token, buf_str(&plain));
}

void rows_told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct rows *l = r->state;
  if (api_refused(r, reply))
    return;
  cleanup_buf struct buf b = BUF_INIT((size_t)64 << 20), token = BUF_INIT(256);
  struct jw w = JW(&b);
  rows_put(r, &w, l, &token);
  struct http_header h = {STR("X-Next-Token"), buf_str(&token)};
  api_json_with(r, 200, buf_str(&b), &h, token.n ? 1 : 0);
}

static void drop(struct req *r)
{
  struct rows *l = r->state;
  vec_free(&l->found);
}

void rows_begin(struct req *r, struct rows *l)
{
  r->state = l;
  r->drop = drop;
}

void rows_tell(struct req *r, struct rows *l, enum wire_type type)
{
  rows_begin(r, l);
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, type, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  api_call_warden_list(r, &b, rows_found, rows_told);
}
