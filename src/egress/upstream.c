/* SPDX-License-Identifier: Apache-2.0 */
/* upstream.c - connections to servers that wait for the next request of the same box to the same name and address,
 * never for another box, and only while the policy is the one that they were made under. */
#include "egress/gateway.h"

struct idle_upstream {
  struct idle_upstream *next;
  struct egress_box *box;
  struct http_call *call;
  char name[DOMAIN_SIZE];
  uint32_t address;
  uint64_t until; /* loop time */
};

struct shared_upstream {
  struct shared_upstream *next;
  struct egress_box *box;
  struct http_link *link;
  char name[DOMAIN_SIZE];
  uint32_t address;
  uint64_t until; /* loop time; while it carries nothing */
};

static void idle_free(struct idle_upstream *i)
{
  i->box->nidle--;
  http_call_free(i->call);
  free(i);
}

static void idle_lost(struct http_call *c, void *arg)
{
  struct idle_upstream *i = arg;
  for (struct idle_upstream **at = &i->box->idle; *at; at = &(*at)->next)
    if (*at == i) {
      *at = i->next;
      break;
    }
  idle_free(i);
}

static void shared_forget(struct shared_upstream *s)
{
  for (struct shared_upstream **at = &s->box->shared; *at; at = &(*at)->next)
    if (*at == s) {
      *at = s->next;
      break;
    }
  s->box->nidle--;
  free(s);
}

/* now UINT64_MAX: all of them. */
void upstreams_tick(struct egress_box *b, uint64_t now)
{
  for (struct idle_upstream **at = &b->idle; *at;) {
    struct idle_upstream *i = *at;
    if (i->until > now) {
      at = &i->next;
      continue;
    }
    *at = i->next;
    idle_free(i);
  }
  for (struct shared_upstream *s = b->shared, *next; s; s = next) {
    next = s->next;
    if (now == UINT64_MAX || (s->until <= now && !http_link_calls(s->link))) {
      http_link_leave(s->link); /* what it carries comes to its end */
      shared_forget(s);
    }
  }
}

static void shared_closed(struct http_link *link, void *arg)
{
  shared_forget(arg);
}

/* It may be used by later requests of the box. */
void upstream_share(const struct upstream_key *k, struct http_link *link)
{
  struct egress_box *b = k->box;
  if (b->removed || b->rules != k->rules || b->nidle >= b->gateway->config->idle_upstreams) {
    http_link_leave(link);
    return;
  }
  struct shared_upstream *s = xcalloc(1, sizeof(*s));
  s->box = b;
  s->link = link;
  s->address = k->address;
  s->until = uv_now(b->gateway->loop) + b->gateway->config->keep_seconds * 1000ull;
  str_copyz(str_of(k->name), s->name, sizeof(s->name));
  http_link_handle(link, shared_closed, s);
  s->next = b->shared;
  b->shared = s;
  b->nidle++;
}

/* A call on a connection that is open already, or NULL. */
struct http_call *upstream_shared(const struct upstream_key *k)
{
  struct egress_box *b = k->box;
  for (struct shared_upstream *s = b->shared; s && b->rules == k->rules; s = s->next)
    if (s->address == k->address && !strcmp(s->name, k->name) && http_link_usable(s->link)) {
      s->until = uv_now(b->gateway->loop) + b->gateway->config->keep_seconds * 1000ull;
      return http_link_call(s->link);
    }
  return NULL;
}

void upstream_keep(const struct upstream_key *k, struct http_call *call)
{
  struct egress_box *b = k->box;
  if (b->removed || b->rules != k->rules || b->nidle >= b->gateway->config->idle_upstreams ||
      !http_call_reusable(call)) {
    http_call_free(call);
    return;
  }
  struct idle_upstream *i = xcalloc(1, sizeof(*i));
  i->box = b;
  i->call = call;
  i->address = k->address;
  i->until = uv_now(b->gateway->loop) + b->gateway->config->keep_seconds * 1000ull;
  str_copyz(str_of(k->name), i->name, sizeof(i->name));
  http_call_handle(call, NULL, NULL);
  http_call_lost(call, idle_lost, i);
  i->next = b->idle;
  b->idle = i;
  b->nidle++;
}

struct http_call *upstream_idle(const struct upstream_key *k)
{
  struct egress_box *b = k->box;
  for (struct idle_upstream **at = &b->idle; *at;) {
    struct idle_upstream *i = *at;
    if (i->address != k->address || strcmp(i->name, k->name) != 0) {
      at = &i->next;
      continue;
    }
    *at = i->next;
    struct http_call *call = i->call;
    bool alive = http_call_alive(call);
    http_call_lost(call, NULL, NULL);
    if (alive) {
      b->nidle--;
      free(i);
      return call;
    }
    idle_free(i);
  }
  return NULL;
}
