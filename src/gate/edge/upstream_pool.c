/* SPDX-License-Identifier: Apache-2.0 */
/* upstream_pool.c - idle connections into a box: a new one costs a request to the warden and a socket made inside the
 * box. The pool holds as many as exchanges were lately under way at once, UPSTREAM_POOL_MIN at least: with fewer, the
 * requests of a burst that find none would queue for the warden while the others take turns with the pooled ones and
 * leave them no processor. After a burst half of the surplus is closed every TRIM_INTERVAL_MS. Last in, first out. */
#include "gate/edge/edge.h"

#define UPSTREAM_POOL_MIN 64 /* per box and gate */
#define TRIM_INTERVAL_MS  10000

static void upstream_pool_gone(struct http_call *c)
{
  struct route *rt = http_call_data(c);
  for (size_t i = 0; i < rt->pooled.n; i++)
    if (rt->pooled.p[i].call == c) {
      vec_remove(&rt->pooled, i);
      break;
    }
  http_call_free(c);
}

/* The service closed it, or sent bytes without a request. */
static void upstream_pool_fail(struct http_call *c, int code, const char *why)
{
  (void)code, (void)why;
  upstream_pool_gone(c);
}

static void upstream_pool_body(struct http_call *c, struct str chunk)
{
  (void)chunk;
  upstream_pool_gone(c);
}

static void upstream_pool_head(struct http_call *c, const struct http_head *head)
{
  (void)head;
  upstream_pool_gone(c);
}

static void upstream_pool_drain(struct http_call *c)
{
  (void)c;
}

static const struct http_call_ops upstream_pool_ops = {
    upstream_pool_head, upstream_pool_body, upstream_pool_gone, upstream_pool_drain, upstream_pool_fail, NULL, NULL};

/* ---- after a burst ---- */

/* Closes those that were idle longest. True while there is more to do later. */
static bool upstream_pool_trim(struct route *rt)
{
  rt->busiest = MAX(rt->peak, rt->busiest / 2);
  rt->peak = rt->nlive;
  size_t most = MAX((size_t)UPSTREAM_POOL_MIN, rt->busiest), over = rt->pooled.n > most ? rt->pooled.n - most : 0;
  for (size_t i = 0; i < over; i++)
    http_call_free(rt->pooled.p[i].call);
  if (over)
    memmove(rt->pooled.p, rt->pooled.p + over, (rt->pooled.n - over) * sizeof(*rt->pooled.p));
  rt->pooled.n -= over;
  return rt->pooled.n > UPSTREAM_POOL_MIN;
}

static void on_trim(uv_timer_t *t)
{
  struct gate *g = t->data;
  bool more = false;
  void *value;
  for (size_t i = 0; map_next(&g->routes, &i, NULL, &value);)
    more |= upstream_pool_trim(value);
  if (!more)
    uv_timer_stop(t);
}

static void trim_later(struct gate *g)
{
  if (!g->trim_timer) {
    g->trim_timer = xcalloc(1, sizeof(*g->trim_timer));
    uv_timer_init(g->loop, g->trim_timer);
    uv_unref((uv_handle_t *)g->trim_timer);
    g->trim_timer->data = g;
  }
  if (!uv_is_active((uv_handle_t *)g->trim_timer))
    uv_timer_start(g->trim_timer, on_trim, TRIM_INTERVAL_MS, TRIM_INTERVAL_MS);
}

/* ---- in and out ---- */

void upstream_pool_put(struct gate *g, struct route *rt, struct http_call *c, unsigned port)
{
  if (!rt || rt->pooled.n >= MAX((size_t)UPSTREAM_POOL_MIN, rt->busiest) || !http_call_reusable(c)) {
    http_call_free(c);
    return;
  }
  http_call_handle(c, &upstream_pool_ops, rt);
  vec_push(&rt->pooled, ((struct pooled_call){c, port}));
  if (rt->pooled.n > UPSTREAM_POOL_MIN)
    trim_later(g);
}

struct http_call *upstream_pool_take(struct route *rt, unsigned port)
{
  for (size_t i = rt->pooled.n; i-- > 0;) {
    if (rt->pooled.p[i].port != port)
      continue;
    struct http_call *c = rt->pooled.p[i].call;
    vec_remove(&rt->pooled, i);
    if (http_call_reusable(c) && http_call_alive(c))
      return c;
    http_call_free(c);
  }
  return NULL;
}

void upstream_pool_free(struct route *rt)
{
  for (size_t i = 0; i < rt->pooled.n; i++)
    http_call_free(rt->pooled.p[i].call);
  vec_free(&rt->pooled);
}
