/* SPDX-License-Identifier: Apache-2.0 */
/* netloop.c - what connections of one loop share: read buffer, deadlines, deferred runs, the date.
 *
 * Deadlines: no timer per connection. Each connection has a deadline field that is moved freely; the loop has one
 * timer set to the earliest deadline anybody asked for. When it fires, one walk over all connections calls
 * those that are due and finds the next time. A deadline that moved away costs nothing until then, and an idle
 * process sleeps for minutes. The gap between walks grows with the number of connections, so many slow peers
 * with deadlines spread over every millisecond can't make walking the main work. A walk that comes much too late means
 * that the process was stopped (a frozen or restored box): then every deadline moves by that time and a little, because
 * the peers' bytes may have come meanwhile and nobody could read them.
 *
 * Deferred runs: nothing in this folder calls a handler from inside the handler's own call. What such a call causes is
 * put off to the connection's deferred run, which comes at the end of the same loop iteration (the check phase) or,
 * when it was asked for outside of polling, at once in the next (an idle handle keeps the loop from sleeping).
 *
 * Memory: what waits for peers that do not take it is counted over all connections. Each has its own high-water mark,
 * which thousands together can make gigabytes; over held_max those that stood still longest are cut (relieve).
 *
 * Gathering: a handler that says three things in one call has them sent in one. Small writes made while a connection
 * steps (its own or another's: a proxy) wait in the connection's queue until that step is over; nothing waits for the
 * loop, a timer or another connection. Who speaks from callbacks of its own wraps them in the same pair. */
#include "net/netloop.h"

#include "net/splice.h"
#include <stdio.h>
#include <time.h>

#define STOPPED_MS      1000 /* a timer this late was not merely busy */
#define HEAD_OUT_MAX    ((size_t)256 << 10)
/* Who is cut when too much waits: only those that hold something worth it and have not moved for a while. */
#define RELIEF_LEAST    ((uint64_t)16 << 10)
#define RELIEF_STALL_MS 3000
#define RELIEF_GAP_MS   200
#define RELIEF_CUTS     64

static _Thread_local struct net *nets;

static void deferred_run(struct net *n)
{
  /* Only what is queued now: a run that asks for another gets it in the next round. */
  struct net_member *list = n->deferred;
  n->deferred = NULL;
  n->deferred_tail = &n->deferred;
  n->refs++;
  net_gather(n); /* a head that waits may find the first of its body in another connection's run */
  while (list) {
    struct net_member *m = list;
    list = m->deferred_next;
    m->deferred_next = NULL;
    m->deferred = false;
    m->ops->run(m);
  }
  net_let_go(n);
  if (!n->deferred)
    uv_idle_stop(&n->idle);
  net_unref(n);
}

/* The one whose bytes have stood still longest; where all move a little, and there is twice too much, the one with
 * most. */
static struct net_member *heaviest(const struct net *n, uint64_t now)
{
  struct net_member *still = NULL, *most = NULL;
  for (struct net_member *m = n->members; m; m = m->next) {
    if (m->held < RELIEF_LEAST)
      continue;
    if (m->held_at + RELIEF_STALL_MS <= now && (!still || m->held_at < still->held_at))
      still = m;
    if (!most || m->held > most->held)
      most = m;
  }
  return still ? still : n->held > 2 * n->held_max ? most : NULL;
}

static void relieve(struct net *n)
{
  uint64_t now = uv_now(n->loop), before = n->held;
  unsigned cut = 0;
  if (now < n->relieve_at)
    return;
  n->relieve_at = now + RELIEF_GAP_MS;
  n->refs++;
  while (n->held > n->held_max && cut < RELIEF_CUTS) {
    struct net_member *m = heaviest(n, now);
    if (!m)
      break;
    m->ops->cut(m);
    cut++;
  }
  if (cut)
    log_warn("%llu MiB wait for peers that do not read: %u connections were cut", (unsigned long long)before >> 20,
             cut);
  net_unref(n);
}

static void on_check(uv_check_t *h)
{
  struct net *n = h->data;
  n->hellos = 0;
  if (n->deferred)
    deferred_run(n);
  if (n->held_max && n->held > n->held_max)
    relieve(n);
}

static void on_idle(uv_idle_t *h)
{
  struct net *n = h->data;
  if (n->deferred)
    deferred_run(n);
}

void net_defer(struct net *n, struct net_member *m)
{
  if (m->deferred)
    return;
  m->deferred = true;
  *n->deferred_tail = m;
  n->deferred_tail = &m->deferred_next;
  if (!uv_is_active((uv_handle_t *)&n->idle))
    uv_idle_start(&n->idle, on_idle);
}

void net_defer_cancel(struct net *n, struct net_member *m)
{
  struct net_member **at = &n->deferred;
  if (!m->deferred)
    return;
  while (*at != m)
    at = &(*at)->deferred_next;
  *at = m->deferred_next;
  if (!*at)
    n->deferred_tail = at;
  m->deferred = false;
}

void net_join(struct net *n, struct net_member *m)
{
  m->prev = NULL;
  m->next = n->members;
  if (n->members)
    n->members->prev = m;
  n->members = m;
  n->nmembers++;
  n->refs++;
}

void net_leave(struct net *n, struct net_member *m)
{
  if (n->cursor == m)
    n->cursor = m->next;
  if (m->prev)
    m->prev->next = m->next;
  else
    n->members = m->next;
  if (m->next)
    m->next->prev = m->prev;
  n->nmembers--;
  n->held -= m->held;
  m->held = 0;
}

void net_gather(struct net *n)
{
  n->gathering++;
}

void net_let_go(struct net *n)
{
  if (--n->gathering)
    return;
  while (n->gathered) {
    struct net_member *m = n->gathered;
    n->gathered = m->gather_next;
    m->gathered = false;
    m->ops->push(m);
  }
}

void net_gather_add(struct net *n, struct net_member *m)
{
  if (m->gathered)
    return;
  m->gathered = true;
  m->gather_next = n->gathered;
  n->gathered = m;
}

static uint64_t sweep_gap(const struct net *n)
{
  return 5 + n->nmembers / 50;
}

static void sweep_late(struct net *n, uint64_t late)
{
  for (struct net_member *m = n->members; m; m = m->next)
    m->ops->postpone(m, late);
}

static void on_sweep(uv_timer_t *h)
{
  struct net *n = h->data;
  uint64_t now = uv_now(n->loop), next = 0;
  n->refs++;
  if (now > n->due + STOPPED_MS)
    sweep_late(n, now - n->due + STOPPED_MS);
  n->due = 0;
  for (struct net_member *m = n->members; m; m = n->cursor) {
    n->cursor = m->next;
    uint64_t due = m->ops->due(m);
    if (due && due <= now)
      m->ops->expire(m, now);
    due = m->ops->due(m);
    if (due && (!next || due < next))
      next = due;
  }
  n->cursor = NULL;
  if (next)
    net_wake(n, MAX(next, now + sweep_gap(n)));
  net_unref(n);
}

void net_wake(struct net *n, uint64_t due)
{
  if (n->due && n->due <= due)
    return;
  uint64_t now = uv_now(n->loop);
  n->due = due;
  uv_timer_start(&n->sweep, on_sweep, due > now ? due - now : 1, 0);
}

static struct net *net_new(uv_loop_t *loop)
{
  struct net *n = xmalloc(sizeof(*n) + NET_IN_SIZE);
  memset(n, 0, sizeof(*n));
  n->loop = loop;
  n->deferred_tail = &n->deferred;
  n->date_at = -1;
  buf_init(&n->head, HEAD_OUT_MAX);
  uv_timer_init(loop, &n->sweep);
  uv_check_init(loop, &n->check);
  uv_idle_init(loop, &n->idle);
  n->sweep.data = n->check.data = n->idle.data = n;
  n->handles = 3;
  uv_check_start(&n->check, on_check);
  uv_unref((uv_handle_t *)&n->sweep);
  uv_unref((uv_handle_t *)&n->check);
  n->next = nets;
  nets = n;
  return n;
}

struct net *net_of(uv_loop_t *loop)
{
  struct net *n = nets;
  while (n && n->loop != loop)
    n = n->next;
  if (!n)
    n = net_new(loop);
  n->refs++;
  return n;
}

static void on_handle_closed(uv_handle_t *h)
{
  struct net *n = h->data;
  if (--n->handles)
    return;
  while (n->spare) {
    struct net_block *b = n->spare;
    n->spare = b->next;
    free(b);
  }
  buf_free(&n->head);
  free(n->copy);
  splice_pipe_close(n->pipe);
  free(n);
}

void net_unref(struct net *n)
{
  if (--n->refs)
    return;
  struct net **at = &nets;
  while (*at != n)
    at = &(*at)->next;
  *at = n->next;
  uv_close((uv_handle_t *)&n->sweep, on_handle_closed);
  uv_close((uv_handle_t *)&n->check, on_handle_closed);
  uv_close((uv_handle_t *)&n->idle, on_handle_closed);
}

struct str net_date(struct net *n)
{
  static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME_COARSE, &ts);
  if (ts.tv_sec != n->date_at) {
    struct tm tm;
    clock_utc(ts.tv_sec, &tm);
    snprintf(n->date, sizeof(n->date), "%s, %02u %s %04u %02u:%02u:%02u GMT", days[tm.tm_wday % 7],
             (unsigned)tm.tm_mday % 100, months[tm.tm_mon % 12], (unsigned)(tm.tm_year + 1900) % 10000,
             (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
    n->date_at = ts.tv_sec;
  }
  return str_make(n->date, 29);
}
