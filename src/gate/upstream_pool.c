/* kept.c - connections into a box that wait for the next request: a fresh one costs a question to the warden and a socket made
 * inside the box. As many are kept as exchanges were lately under way at once, KEPT_FEW at least: with fewer, a crowd's requests
 * that find none would queue for the warden while the others take turns with the kept ones and leave them no processor. What is
 * left over when a crowd has gone goes too, half of it with every KEPT_CALM_MS. Those used last are used first. */
#include "gate/edge.h"

#define KEPT_FEW     64 /* per box and gate */
#define KEPT_CALM_MS 10000

static void kept_gone(struct http_call *c)
{
  struct route *rt = http_call_data(c);
  for (size_t i = 0; i < rt->kept.n; i++)
    if (rt->kept.p[i].call == c) {
      vec_remove(&rt->kept, i);
      break;
    }
  http_call_free(c);
}

/* The far side closed it, or said what nobody asked for. */
static void kept_fail(struct http_call *c, int code, const char *why)
{
  (void)code, (void)why;
  kept_gone(c);
}

static void kept_body(struct http_call *c, struct str chunk)
{
  (void)chunk;
  kept_gone(c);
}

static void kept_head(struct http_call *c, const struct http_head *head)
{
  (void)head;
  kept_gone(c);
}

static void kept_drain(struct http_call *c)
{
  (void)c;
}

static const struct http_call_ops kept_ops = {kept_head, kept_body, kept_gone, kept_drain, kept_fail, NULL, NULL};

/* ---- after a crowd ---- */

/* Closes the ones that waited longest. True while there is more to do later. */
static bool kept_trim(struct route *rt)
{
  rt->busiest = MAX(rt->peak, rt->busiest / 2);
  rt->peak = rt->nlive;
  size_t most = MAX((size_t)KEPT_FEW, rt->busiest), over = rt->kept.n > most ? rt->kept.n - most : 0;
  for (size_t i = 0; i < over; i++)
    http_call_free(rt->kept.p[i].call);
  if (over)
    memmove(rt->kept.p, rt->kept.p + over, (rt->kept.n - over) * sizeof(*rt->kept.p));
  rt->kept.n -= over;
  return rt->kept.n > KEPT_FEW;
}

static void on_calm(uv_timer_t *t)
{
  struct gate *g = t->data;
  bool more = false;
  void *value;
  for (size_t i = 0; map_next(&g->routes, &i, NULL, &value);)
    more |= kept_trim(value);
  if (!more)
    uv_timer_stop(t);
}

static void trim_later(struct gate *g)
{
  if (!g->calm) {
    g->calm = xcalloc(1, sizeof(*g->calm));
    uv_timer_init(g->loop, g->calm);
    uv_unref((uv_handle_t *)g->calm);
    g->calm->data = g;
  }
  if (!uv_is_active((uv_handle_t *)g->calm))
    uv_timer_start(g->calm, on_calm, KEPT_CALM_MS, KEPT_CALM_MS);
}

/* ---- in and out ---- */

void kept_put(struct gate *g, struct route *rt, struct http_call *c, unsigned port)
{
  if (!rt || rt->kept.n >= MAX((size_t)KEPT_FEW, rt->busiest) || !http_call_reusable(c)) {
    http_call_free(c);
    return;
  }
  http_call_handle(c, &kept_ops, rt);
  vec_push(&rt->kept, ((struct kept_call){c, port}));
  if (rt->kept.n > KEPT_FEW)
    trim_later(g);
}

struct http_call *kept_take(struct route *rt, unsigned port, bool once)
{
  for (size_t i = rt->kept.n; i-- > 0;) {
    if (rt->kept.p[i].port != port)
      continue;
    struct http_call *c = rt->kept.p[i].call;
    vec_remove(&rt->kept, i);
    if (http_call_reusable(c) && (!once || http_call_alive(c)))
      return c;
    http_call_free(c);
  }
  return NULL;
}

void kept_free(struct route *rt)
{
  for (size_t i = 0; i < rt->kept.n; i++)
    http_call_free(rt->kept.p[i].call);
  vec_free(&rt->kept);
}
