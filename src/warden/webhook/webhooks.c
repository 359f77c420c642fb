/* SPDX-License-Identifier: Apache-2.0 */
/* webhooks.c - see webhooks.h. Only what is not over is in memory: a list per webhook of what may go, one of what waits
 * to be repeated, one of what is under way. Bodies stay in the store until they go out.
 *
 * How many webhooks an event has, and how many wait for a webhook that is disabled, is their team's choice, and all of
 * it is written on the warden's loop. So it is done in slices: a few rows in one transaction, teams by turns, and the
 * loop has its time between two of them. */
#include "warden/webhook/webhooks.h"

#include "warden/core/context.h"
#include "warden/core/egress.h"
#include "warden/webhook/delivery_report.h"
#include "warden/webhook/signature.h"
#include "wire/box_socket.h"
#include "wire/ipc.h"
#include <stdio.h>

#define INTERRUPTED_MAX 4 /* attempts of one event that may be cut off without counting */
#define TRIM_MS         5000
#define TRIM_BUSY_MS    50 /* while there is more to trim */
#define TRIM_ROWS       64
#define SLICE_ROWS      16       /* attempts written in one transaction, and what one event more has */
#define SLICE_US        10000    /* from the beginning of one slice to the next */
#define LOOK_AHEAD      64       /* of a webhook's deliveries that may go, for one whose sandbox has none under way */
#define REFUSED_US      60000000 /* between two lines in the log about a team's events that are not queued */
#define DAY_US          86400000000ll
#define BROKEN_US       10000000 /* the store could not be written: the next try */

struct delivery {
  struct delivery *next;
  struct hook *hook; /* NULL: it was deleted meanwhile */
  struct hook_team *team;
  struct row_attempt row;
};

/* First in, first out. */
struct delivery_list {
  struct delivery *first, **last;
  size_t n;
};

struct hook {
  struct row_webhook row;
  struct hook_team *team;
  struct delivery_list ready, later; /* later: in the order they are due */
  struct delivery_list flying;
  struct delivery_list canceled; /* to be recorded as such */
};

/* An event that is not fanned out. */
struct pending {
  struct pending *next;
  struct row_fanout row;
};

struct hook_team {
  char id[UUID_SIZE];
  VEC(struct hook *) hooks; /* oldest first */
  size_t turn;              /* whose it is */
  size_t waiting, bytes, flying;
  struct pending *pending, **pending_last;
  size_t pending_n, pending_bytes;
  uint64_t refused; /* events that were not queued */
  int64_t refused_us;
};

struct webhooks {
  struct warden *warden;
  struct ipc *link;
  struct map hooks;  /* id -> struct hook */
  struct map flying; /* id of an attempt -> struct delivery */
  VEC(struct hook_team *) teams;
  size_t turn, fan_turn;
  uv_prepare_t prepare;
  uv_timer_t timer, trimmer, slicer;
  size_t pending, canceled; /* of all teams */
  int64_t slice_us;         /* when the next slice may begin */
  int64_t fan_loaded;       /* the last seq of an event that was read */
  int64_t loaded;           /* the last seq that was read */
  uint64_t noticed;         /* store_attempts_added at that time */
  uint64_t delivered, failed;
};

/* ---- lists ---- */

static void list_push(struct delivery_list *l, struct delivery *d)
{
  l->last = l->first ? l->last : &l->first;
  d->next = NULL;
  *l->last = d;
  l->last = &d->next;
  l->n++;
}

static void list_remove(struct delivery_list *l, struct delivery *d)
{
  struct delivery **at = &l->first;
  while (*at && *at != d)
    at = &(*at)->next;
  if (!*at)
    return;
  *at = d->next;
  if (l->last == &d->next)
    l->last = at;
  l->n--;
}

static struct delivery *list_pop(struct delivery_list *l)
{
  struct delivery *d = l->first;
  if (d)
    list_remove(l, d);
  return d;
}

/* ---- teams and webhooks ---- */

static struct hook_team *team_of(struct webhooks *q, struct str id, bool make)
{
  for (size_t i = 0; i < q->teams.n; i++)
    if (str_is(id, q->teams.p[i]->id))
      return q->teams.p[i];
  if (!make)
    return NULL;
  struct hook_team *t = xcalloc(1, sizeof(*t));
  str_copyz(id, t->id, sizeof(t->id));
  vec_push(&q->teams, t);
  return t;
}

static struct hook *hook_of(struct webhooks *q, struct str team, struct str id)
{
  struct hook *h = map_get(&q->hooks, id);
  return h && str_is(team, h->row.team) ? h : NULL;
}

/* Takes the row. */
static struct hook *hook_add(struct webhooks *q, struct row_webhook *row)
{
  struct hook *h = xcalloc(1, sizeof(*h));
  h->row = *row;
  *row = (struct row_webhook){0};
  h->team = team_of(q, str_of(h->row.team), true);
  vec_push(&h->team->hooks, h);
  map_put(&q->hooks, str_of(h->row.id), h);
  return h;
}

static void forget_waiting(struct hook *h, struct delivery *d)
{
  h->team->waiting--;
  h->team->bytes -= d->row.bytes;
}

static void hook_empty(struct hook *h)
{
  struct delivery_list *const lists[] = {&h->ready, &h->later};
  for (size_t i = 0; i < ARRAY_LEN(lists); i++)
    for (struct delivery *d; (d = list_pop(lists[i]));) {
      forget_waiting(h, d);
      free(d);
    }
}

static void hook_free(struct webhooks *q, struct hook *h)
{
  hook_empty(h);
  q->canceled -= h->canceled.n;
  for (struct delivery *d; (d = list_pop(&h->canceled));)
    free(d);
  for (struct delivery *d; (d = list_pop(&h->flying));)
    d->hook = NULL;
  for (size_t i = 0; i < h->team->hooks.n; i++)
    if (h->team->hooks.p[i] == h) {
      vec_remove(&h->team->hooks, i);
      break;
    }
  map_del(&q->hooks, str_of(h->row.id));
  row_webhook_free(&h->row);
  free(h);
}

/* ---- the end of an attempt ---- */

static void plan_next(const struct row_attempt *a, struct row_attempt *next, int64_t due_us)
{
  *next = *a;
  uuid4(next->id);
  next->state = ATTEMPT_WAITING;
  next->due_us = due_us;
}

static const struct warden_config *config_of(const struct webhooks *q)
{
  return warden_config(q->warden);
}

/* Records it, with the attempt that follows; that one is read back by notice(). */
static void record(struct webhooks *q, const struct row_attempt *a, bool enabled, const struct attempt_end *end,
                   bool interrupted)
{
  struct row_attempt next;
  struct err err = ERR_NONE;
  bool again = false, counts = !interrupted || a->interrupted >= INTERRUPTED_MAX;
  q->delivered += end->class == DELIVERY_OK;
  q->failed += end->class != DELIVERY_OK;
  if (enabled && end->class != DELIVERY_OK && !counts) {
    plan_next(a, &next, clock_wall_us());
    next.interrupted++;
    again = true;
  } else if (enabled && end->class != DELIVERY_OK && a->number < config_of(q)->webhook_attempts) {
    plan_next(a, &next, clock_wall_us() + (int64_t)config_of(q)->webhook_retry_s * 1000000);
    next.number++;
    again = true;
  }
  if (store_attempt_end(warden_store(q->warden), a->seq, end, again ? &next : NULL, &err))
    log_error("delivery %s is not recorded: %s", a->id, err.msg);
}

static void land(struct webhooks *q, struct delivery *d, const struct attempt_end *end, bool interrupted)
{
  struct hook *h = d->hook;
  map_del(&q->flying, str_of(d->row.id));
  d->team->flying--;
  if (h) {
    list_remove(&h->flying, d);
    record(q, &d->row, h->row.enabled, end, interrupted);
  }
  free(d);
}

#define CUT_OFF "the server's sending process ended while this was under way; it is sent again"
static const struct attempt_end cut_off = {.class = DELIVERY_CANCELED, .message = {CUT_OFF, sizeof(CUT_OFF) - 1}};

/* ---- sending ---- */

static void put_header(struct buf *lines, struct jw *json, const char *name, const char *value, const char *shown)
{
  buf_addf(lines, "%s%s: %s", lines->n ? "\n" : "", name, value);
  jw_key(json, name);
  jw_z(json, shown);
}

static void put_headers(const struct hook *h, const struct delivery *d, struct str body, struct buf *lines,
                        struct buf *shown)
{
  static const char redacted[] = "[redacted]";
  char v1[SIGNATURE_TEXT], hmac[2 * SHA256_LEN + 1];
  struct str secret = buf_str(&h->row.secret);
  struct jw w = JW(shown);
  signature_v1(secret, body, v1);
  signature_hmac(secret, body, hmac);
  jw_open(&w, '{');
  put_header(lines, &w, "Content-Type", "application/json", "application/json");
  put_header(lines, &w, "User-Agent", "cloche/" CLOCHE_VERSION, "cloche/" CLOCHE_VERSION);
  put_header(lines, &w, "e2b-webhook-id", h->row.id, h->row.id);
  put_header(lines, &w, "e2b-delivery-id", d->row.id, d->row.id);
  put_header(lines, &w, "e2b-signature-version", "v1", "v1");
  put_header(lines, &w, "e2b-signature", v1, redacted);
  put_header(lines, &w, "cloche-signature-hmac-sha256", hmac, redacted);
  jw_close(&w, '}');
}

static void postpone(struct hook *h, struct delivery *d)
{
  d->row.due_us = clock_wall_us() + BROKEN_US;
  h->team->waiting++;
  h->team->bytes += d->row.bytes;
  list_push(&h->later, d);
}

/* It was waiting and is in no list now. */
static void take_off(struct webhooks *q, struct hook *h, struct delivery *d)
{
  cleanup_buf struct buf body = BUF_INIT(WIRE_MAX), lines = BUF_INIT(4096), shown = BUF_INIT(8192),
                         packet = BUF_INIT(WIRE_MAX);
  struct err err = ERR_NONE;
  struct store *store = warden_store(q->warden);
  int r = store_attempt_body(store, d->row.event, &body);
  forget_waiting(h, d);
  put_headers(h, d, buf_str(&body), &lines, &shown);
  wire_begin(&packet, WIRE_SEND, 0, 0);
  wire_putz(&packet, W_ID, d->row.id);
  wire_putz(&packet, W_TEAM, h->row.team);
  wire_putz(&packet, W_URL, h->row.url);
  wire_put(&packet, W_HEADERS, buf_str(&lines));
  wire_put(&packet, W_BODY, buf_str(&body));
  if (store_attempt_begin(store, d->row.seq, clock_wall_us(), h->row.url, buf_z(&shown), &err)) {
    log_error("webhooks: %s", err.msg);
    postpone(h, d);
    return;
  }
  d->row.state = ATTEMPT_UNDER_WAY;
  list_push(&h->flying, d);
  h->team->flying++;
  map_put(&q->flying, str_of(d->row.id), d);
  struct attempt_end end = {.class = DELIVERY_REQUEST, .message = STR("the event is too large to be sent")};
  if (r || buf_failed(&packet))
    land(q, d, &end, false);
  else if (ipc_send(q->link, buf_str(&packet), -1))
    land(q, d, &cut_off, true);
}

static size_t flying_to(const struct hook_team *t, const char *origin)
{
  size_t n = 0;
  for (size_t i = 0; i < t->hooks.n; i++)
    if (!strcmp(t->hooks.p[i]->row.origin, origin))
      n += t->hooks.p[i]->flying.n;
  return n;
}

static bool flies(const struct hook *h, const char *sandbox)
{
  for (const struct delivery *d = h->flying.first; d; d = d->next)
    if (!strcmp(d->row.sandbox, sandbox))
      return true;
  return false;
}

/* The first whose sandbox has none under way: it and those behind it stay in order. Not far: all of them may be of one
 * sandbox. */
static struct delivery *hook_next(struct webhooks *q, struct hook *h)
{
  if (!h->ready.n || flying_to(h->team, h->row.origin) >= config_of(q)->webhook_host_connections)
    return NULL;
  size_t looked = 0;
  for (struct delivery *d = h->ready.first; d && looked++ < LOOK_AHEAD; d = d->next)
    if (!flies(h, d->row.sandbox)) {
      list_remove(&h->ready, d);
      return d;
    }
  return NULL;
}

static bool team_send(struct webhooks *q, struct hook_team *t)
{
  if (t->flying >= config_of(q)->webhook_team_connections)
    return false;
  for (size_t i = 0; i < t->hooks.n; i++) {
    size_t at = (t->turn + i) % t->hooks.n;
    struct hook *h = t->hooks.p[at];
    struct delivery *d = hook_next(q, h);
    if (!d)
      continue;
    t->turn = at + 1;
    take_off(q, h, d);
    return true;
  }
  return false;
}

static bool send_one(struct webhooks *q)
{
  for (size_t i = 0; i < q->teams.n; i++) {
    size_t at = (q->turn + i) % q->teams.n;
    if (!team_send(q, q->teams.p[at]))
      continue;
    q->turn = at + 1;
    return true;
  }
  return false;
}

/* What is due may go; returns when the next one is, INT64_MAX = none. */
static int64_t wake_due(struct webhooks *q, int64_t now)
{
  int64_t soonest = INT64_MAX;
  void *value;
  for (size_t i = 0; map_next(&q->hooks, &i, NULL, &value);) {
    struct hook *h = value;
    while (h->later.first && h->later.first->row.due_us <= now)
      list_push(&h->ready, list_pop(&h->later));
    if (h->later.first)
      soonest = MIN(soonest, h->later.first->row.due_us);
  }
  return soonest;
}

static void pump(struct webhooks *q);

static void on_due(uv_timer_t *t)
{
  pump(t->data);
}

static void pump(struct webhooks *q)
{
  int64_t now = clock_wall_us(), soonest = wake_due(q, now);
  while (q->link && q->flying.n < config_of(q)->webhook_connections && send_one(q))
    ;
  if (soonest != INT64_MAX)
    uv_timer_start(&q->timer, on_due, (uint64_t)((soonest - now) / 1000 + 1), 0);
}

/* ---- what comes in ---- */

struct rows {
  VEC(struct row_attempt) all;
};

static int keep_row(const struct row_attempt *a, void *arg)
{
  struct rows *rows = arg;
  vec_push(&rows->all, *a);
  return 0;
}

#define DISABLED "the webhook was disabled"

static void drop(struct webhooks *q, const struct row_attempt *a, const char *why)
{
  struct attempt_end end = {.class = DELIVERY_CANCELED, .message = str_of(why)};
  record(q, a, false, &end, false);
}

static void wait_for_turn(struct webhooks *q, struct hook *h, const struct row_attempt *a)
{
  struct delivery *d = xcalloc(1, sizeof(*d));
  int64_t now = clock_wall_us(), longest = now + (int64_t)config_of(q)->webhook_retry_s * 1000000;
  *d = (struct delivery){.hook = h, .team = h->team, .row = *a};
  d->row.due_us = MIN(d->row.due_us, longest); /* the clock may have been set back */
  h->team->waiting++;
  h->team->bytes += a->bytes;
  list_push(a->due_us <= now ? &h->ready : &h->later, d);
}

static struct delivery *oldest(struct hook_team *t)
{
  struct delivery *found = NULL;
  for (size_t i = 0; i < t->hooks.n; i++) {
    struct delivery *const heads[] = {t->hooks.p[i]->ready.first, t->hooks.p[i]->later.first};
    for (size_t k = 0; k < ARRAY_LEN(heads); k++)
      if (heads[k] && (!found || heads[k]->row.first < found->row.first))
        found = heads[k];
  }
  return found;
}

static void bound_team(struct webhooks *q, struct hook_team *t)
{
  const struct warden_config *c = config_of(q);
  while (t->waiting > c->webhook_team_queue || t->bytes > (size_t)c->webhook_team_queue_mb << 20) {
    struct delivery *d = oldest(t);
    if (!d)
      return;
    struct hook *h = d->hook;
    list_remove(h->ready.first == d ? &h->ready : &h->later, d);
    forget_waiting(h, d);
    drop(q, &d->row,
         "too many events of this team were waiting (webhook_team_queue, webhook_team_queue_mb): the oldest "
         "one was given up");
    free(d);
  }
}

static void pending_pop(struct webhooks *q, struct hook_team *t)
{
  struct pending *p = t->pending;
  t->pending = p->next;
  t->pending_n--;
  t->pending_bytes -= p->row.bytes;
  q->pending--;
  free(p->row.targets);
  free(p);
}

static int keep_fanout(const struct row_fanout *f, void *arg)
{
  struct webhooks *q = arg;
  struct hook_team *t = team_of(q, str_of(f->team), true);
  struct pending *p = xcalloc(1, sizeof(*p));
  p->row = *f;
  p->row.targets = xstrdup(f->targets);
  if (!t->pending)
    t->pending_last = &t->pending;
  *t->pending_last = p;
  t->pending_last = &p->next;
  t->pending_n++;
  t->pending_bytes += f->bytes;
  q->pending++;
  q->fan_loaded = f->seq;
  return 0;
}

static void take_row(struct webhooks *q, const struct row_attempt *a)
{
  struct hook *h = map_get(&q->hooks, str_of(a->webhook));
  q->loaded = MAX(q->loaded, a->seq);
  if (a->state == ATTEMPT_UNDER_WAY && !map_get(&q->flying, str_of(a->id)))
    record(q, a, h && h->row.enabled, &cut_off, true); /* of a warden that is gone */
  else if (h && !h->row.enabled)
    drop(q, a, DISABLED);
  else if (h && a->state == ATTEMPT_WAITING)
    wait_for_turn(q, h, a); /* those of a webhook that is gone are trimmed */
}

/* Reads what was added to the store since the last time. One transaction for all that this gives up. */
static void notice(struct webhooks *q)
{
  struct store *store = warden_store(q->warden);
  while (q->noticed != store_attempts_added(store)) {
    struct rows rows = {0};
    struct err err = ERR_NONE;
    q->noticed = store_attempts_added(store);
    store_fanouts(store, q->fan_loaded, keep_fanout, q);
    store_attempts_open(store, q->loaded, keep_row, &rows);
    bool begun = rows.all.n && !store_begin(store, &err);
    for (size_t i = 0; i < rows.all.n; i++)
      take_row(q, &rows.all.p[i]);
    for (size_t i = 0; rows.all.n && i < q->teams.n; i++)
      bound_team(q, q->teams.p[i]);
    if (begun && store_end(store, 0, &err))
      log_error("webhooks: %s", err.msg);
    vec_free(&rows.all);
  }
}

/* ---- slices ---- */

static struct hook_team *next_pending(struct webhooks *q)
{
  for (size_t i = 0; i < q->teams.n; i++) {
    size_t at = (q->fan_turn + i) % q->teams.n;
    if (!q->teams.p[at]->pending)
      continue;
    q->fan_turn = at + 1;
    return q->teams.p[at];
  }
  return NULL;
}

static int fan_out(struct webhooks *q, struct err *err)
{
  struct hook_team *t;
  int r = 0;
  for (size_t rows = 0; !r && rows < SLICE_ROWS && (t = next_pending(q));) {
    size_t made;
    r = store_fan_out(warden_store(q->warden), &t->pending->row, &made, err);
    rows += made + 1;
    pending_pop(q, t);
  }
  return r;
}

static void record_canceled(struct webhooks *q)
{
  size_t rows = 0;
  void *value;
  for (size_t i = 0; q->canceled && rows < SLICE_ROWS && map_next(&q->hooks, &i, NULL, &value);) {
    struct hook *h = value;
    for (struct delivery *d; rows < SLICE_ROWS && (d = list_pop(&h->canceled)); rows++, q->canceled--) {
      drop(q, &d->row, DISABLED);
      free(d);
    }
  }
}

/* Everything again from the store: what was begun is as it was. */
static void fan_out_failed(struct webhooks *q)
{
  for (size_t i = 0; i < q->teams.n; i++)
    while (q->teams.p[i]->pending)
      pending_pop(q, q->teams.p[i]);
  q->fan_loaded = 0;
  q->noticed = UINT64_MAX;
  q->slice_us = clock_mono_us() + BROKEN_US;
}

static void on_slice(uv_timer_t *t)
{
  /* before_wait does it */
}

static void slice(struct webhooks *q)
{
  struct store *store = warden_store(q->warden);
  struct err err = ERR_NONE;
  int64_t now = clock_mono_us();
  int r = 0;
  if (now >= q->slice_us && (q->pending || q->canceled)) {
    q->slice_us = now + SLICE_US;
    r = store_begin(store, &err);
    if (!r) {
      r = fan_out(q, &err);
      record_canceled(q);
      r = store_end(store, r, &err);
    }
    if (r) {
      log_error("webhooks: %s", err.msg);
      fan_out_failed(q);
    }
  }
  if (q->pending || q->canceled || r)
    uv_timer_start(&q->slicer, on_slice, (uint64_t)(MAX(q->slice_us - clock_mono_us(), (int64_t)0) / 1000 + 1), 0);
}

/* Before the loop waits: after everything that this turn of it has recorded. */
static void before_wait(uv_prepare_t *p)
{
  struct webhooks *q = p->data;
  if (q->noticed == store_attempts_added(warden_store(q->warden)) && !q->pending && !q->canceled)
    return;
  notice(q);
  slice(q);
  notice(q); /* also again what could not be fanned out */
  pump(q);
}

/* The store asks, while it records an event. */
static bool has_room(const char *team, void *arg)
{
  struct webhooks *q = arg;
  const struct warden_config *c = config_of(q);
  struct hook_team *t = team_of(q, str_of(team), false);
  int64_t now = clock_mono_us();
  if (!t || (t->pending_n < c->webhook_team_queue && t->pending_bytes < (size_t)c->webhook_team_queue_mb << 20))
    return true;
  t->refused++;
  q->failed++;
  if (!t->refused_us || now - t->refused_us > REFUSED_US) {
    log_warn("team %s: %llu events are not sent to its webhooks, too many wait (webhook_team_queue)", t->id,
             (unsigned long long)t->refused);
    t->refused_us = now;
  }
  return false;
}

/* ---- the sender ---- */

static void on_report(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct webhooks *q = arg;
  struct delivery_report report;
  if (fd >= 0)
    close(fd);
  if (delivery_report_read(packet, &report)) {
    log_error("malformed report of %zu bytes from the sender", packet.n);
    return;
  }
  struct delivery *d = map_get(&q->flying, report.id);
  if (d)
    land(q, d, &report.end, false);
  notice(q);
  pump(q);
}

static void cut_off_all(struct webhooks *q)
{
  void *value;
  for (size_t i = 0; map_next(&q->flying, &i, NULL, &value);)
    land(q, value, &cut_off, true);
}

static void on_sender_closed(struct ipc *l, void *arg)
{
  struct webhooks *q = arg;
  if (q->link == l) {
    q->link = NULL;
    cut_off_all(q);
  }
  ipc_free(l);
}

static const struct ipc_ops sender_ops = {on_report, on_sender_closed};

void webhooks_link(struct warden *w, int fd)
{
  struct webhooks *q = warden_webhooks(w);
  cleanup_buf struct buf b = BUF_INIT(256);
  box_socket_guard(fd);
  if (q->link) {
    q->link = NULL;
    cut_off_all(q);
  }
  q->link = ipc_new(warden_loop(w), fd, &sender_ops, q);
  ipc_guard(q->link);
  wire_begin(&b, WIRE_SENDER_HELLO, 0, 0);
  wire_put_u64(&b, W_FROM, egress_pool(w));
  ipc_send(q->link, buf_str(&b), -1);
  notice(q);
  pump(q);
}

/* ---- forgetting ---- */

static void trim(uv_timer_t *t)
{
  struct webhooks *q = t->data;
  size_t removed = 0;
  store_deliveries_trim(warden_store(q->warden), clock_wall_us() - (int64_t)config_of(q)->events_days * DAY_US,
                        TRIM_ROWS, &removed);
  uv_timer_start(t, trim, removed ? TRIM_BUSY_MS : TRIM_MS, 0);
}

/* ---- life ---- */

static int load_webhook(const struct row_webhook *r, void *arg)
{
  struct row_webhook copy = *r;
  copy.name = xstrdup(r->name);
  copy.url = xstrdup(r->url);
  copy.origin = xstrdup(r->origin);
  copy.events = xstrdup(r->events);
  copy.secret = BUF_INIT(r->secret.max);
  buf_adds(&copy.secret, buf_str(&r->secret));
  hook_add(arg, &copy);
  return 0;
}

int webhooks_open(struct warden *w, struct err *err)
{
  struct webhooks *q = xcalloc(1, sizeof(*q));
  q->warden = w;
  q->noticed = UINT64_MAX;
  warden_set_webhooks(w, q);
  int r = store_webhooks(warden_store(w), load_webhook, q);
  if (r)
    return err_set(err, r, "webhooks can't be read from the database");
  uv_prepare_init(warden_loop(w), &q->prepare);
  uv_timer_init(warden_loop(w), &q->timer);
  uv_timer_init(warden_loop(w), &q->trimmer);
  uv_timer_init(warden_loop(w), &q->slicer);
  q->prepare.data = q->timer.data = q->trimmer.data = q->slicer.data = q;
  uv_prepare_start(&q->prepare, before_wait);
  uv_timer_start(&q->trimmer, trim, TRIM_MS, 0);
  store_webhook_rules(warden_store(w),
                      &(struct webhook_rules){.kept = config_of(q)->webhook_team_deliveries,
                                              .kept_bytes = (uint64_t)config_of(q)->webhook_team_deliveries_mb << 20,
                                              .room = has_room,
                                              .arg = q});
  notice(q);
  return 0;
}

void webhooks_close(struct warden *w)
{
  struct webhooks *q = warden_webhooks(w);
  void *value;
  if (!q)
    return;
  for (size_t i = 0; map_next(&q->flying, &i, NULL, &value);)
    free(value); /* stays under way in the store; the next warden sends it again */
  for (size_t i = 0; map_next(&q->hooks, &i, NULL, &value);) {
    ((struct hook *)value)->flying = (struct delivery_list){0};
    hook_free(q, value);
  }
  store_webhook_rules(warden_store(w), &(struct webhook_rules){0});
  for (size_t i = 0; i < q->teams.n; i++) {
    while (q->teams.p[i]->pending)
      pending_pop(q, q->teams.p[i]);
    vec_free(&q->teams.p[i]->hooks);
    free(q->teams.p[i]);
  }
  vec_free(&q->teams);
  map_free(&q->flying);
  map_free(&q->hooks);
  free(q);
  warden_set_webhooks(w, NULL);
}

void webhooks_figures(struct warden *w, struct wire_status *out)
{
  const struct webhooks *q = warden_webhooks(w);
  if (!q)
    return;
  out->webhooks_delivered = q->delivered;
  out->webhooks_failed = q->failed;
  out->webhooks_waiting = q->flying.n;
  for (size_t i = 0; i < q->teams.n; i++)
    out->webhooks_waiting += q->teams.p[i]->waiting + q->teams.p[i]->pending_n;
}

/* ---- changes ---- */

const struct row_webhook *webhook_find(struct warden *w, struct str team, struct str id)
{
  const struct hook *h = hook_of(warden_webhooks(w), team, id);
  return h ? &h->row : NULL;
}

const struct row_webhook *webhook_at(struct warden *w, struct str team, size_t at)
{
  const struct hook_team *t = team_of(warden_webhooks(w), team, false);
  return t && at < t->hooks.n ? &t->hooks.p[at]->row : NULL;
}

int webhook_add(struct warden *w, struct row_webhook *row, struct err *err)
{
  struct webhooks *q = warden_webhooks(w);
  const struct hook_team *t = team_of(q, str_of(row->team), false);
  unsigned most = config_of(q)->team_webhooks_max;
  if (t && t->hooks.n >= most)
    return err_set(err, -E2BIG, "this team has %zu webhooks, as many as it may (%u): delete some first", t->hooks.n,
                   most);
  if (map_get(&q->hooks, str_of(row->id)))
    return err_set(err, -EEXIST, "there is a webhook with the id %s", row->id);
  int r = store_webhook_put(warden_store(w), row, err);
  if (!r)
    hook_add(q, row);
  return r;
}

static void replace(char **text, struct str value)
{
  if (!value.p)
    return;
  free(*text);
  *text = xstrndup(value.p, value.n);
}

/* What waits for it is recorded as canceled, slice by slice. */
static void give_up(struct webhooks *q, struct hook *h)
{
  struct delivery_list *const lists[] = {&h->ready, &h->later};
  for (size_t i = 0; i < ARRAY_LEN(lists); i++)
    for (struct delivery *d; (d = list_pop(lists[i])); q->canceled++) {
      forget_waiting(h, d);
      list_push(&h->canceled, d);
    }
}

int webhook_change(struct warden *w, struct str team, struct str id, const struct webhook_change *c, struct err *err)
{
  struct webhooks *q = warden_webhooks(w);
  struct hook *h = hook_of(q, team, id);
  if (!h)
    return err_set(err, -ENOENT, "no webhook with the id " STR_FMT, STR_ARG(id));
  bool was = h->row.enabled;
  replace(&h->row.name, c->name);
  replace(&h->row.url, c->url);
  replace(&h->row.origin, c->origin);
  replace(&h->row.events, c->events);
  if (c->secret.p) {
    buf_clear(&h->row.secret);
    buf_adds(&h->row.secret, c->secret);
  }
  h->row.enabled = c->enabled < 0 ? was : c->enabled > 0;
  int r = store_webhook_put(warden_store(w), &h->row, err);
  if (!r && was && !h->row.enabled) {
    give_up(q, h);
  }
  return r;
}

int webhook_remove(struct warden *w, struct str team, struct str id, struct err *err)
{
  struct webhooks *q = warden_webhooks(w);
  struct hook *h = hook_of(q, team, id);
  if (!h)
    return err_set(err, -ENOENT, "no webhook with the id " STR_FMT, STR_ARG(id));
  int r = store_webhook_delete(warden_store(w), h->row.id, err);
  if (!r)
    hook_free(q, h);
  return r;
}
