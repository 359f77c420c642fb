/* SPDX-License-Identifier: Apache-2.0 */
/* store_worker.c - see store_worker.h. */
#include "store/store_worker.h"

#include "store/node_rows.h"
#include "store/store_postgres.h"
#include "warden/db/store_sql.h"
#include "wire/wire.h"
#include <pthread.h>
#include <time.h>

#define WAITING_MAX   256
#define WAIT_FIRST_US 250000
#define WAIT_MOST_US  5000000
#define HOUR_US       3600000000LL

struct packet {
  uint64_t serial;
  char *p;
  size_t n;
};
struct packets {
  VEC(struct packet) list;
};

struct store_worker {
  const char *url;
  store_answer_fn answer;
  void *arg;
  uv_async_t wake; /* the loop: answers are there */
  pthread_t thread;
  pthread_mutex_t mutex; /* of the next five */
  pthread_cond_t changed;
  struct packets requests, answers;
  bool runs, stopping;
  /* the thread's own */
  struct store *store; /* NULL: it was never open */
  int64_t wait_us, next_us;
  bool away;               /* as the log was told */
  struct node_record self; /* the node that holds a lease through us; epoch 0 = none */
};

/* ---- answers ---- */

static void push(struct packets *to, uint64_t serial, struct str bytes)
{
  struct packet p = {serial, xmalloc(bytes.n), bytes.n};
  memcpy(p.p, bytes.p, bytes.n);
  vec_push(&to->list, p);
}

static void tell(struct store_worker *w, uint64_t serial, const struct buf *b)
{
  pthread_mutex_lock(&w->mutex);
  push(&w->answers, serial, buf_str(b));
  pthread_mutex_unlock(&w->mutex);
  uv_async_send(&w->wake);
}

static void hand_out(uv_async_t *wake)
{
  struct store_worker *w = wake->data;
  pthread_mutex_lock(&w->mutex);
  struct packets now = w->answers;
  w->answers = (struct packets){0};
  pthread_mutex_unlock(&w->mutex);
  for (size_t i = 0; i < now.list.n; i++) {
    w->answer(w->arg, now.list.p[i].serial, str_make(now.list.p[i].p, now.list.p[i].n));
    free(now.list.p[i].p);
  }
  vec_free(&now.list);
}

/* ---- the connection ---- */

static int away(struct store_worker *w, const struct err *why, struct err *err)
{
  if (!w->away)
    log_warn("the store is away; boxes go on, what needs it is refused meanwhile: %s", why->msg);
  w->away = true;
  w->wait_us = w->wait_us ? MIN(w->wait_us * 2, (int64_t)WAIT_MOST_US) : WAIT_FIRST_US;
  w->next_us = clock_mono_us() + w->wait_us;
  return err_set(err, -ENOTCONN, "the store is away: %s", why->msg);
}

/* A statement that changes nothing tells whether the connection works, before one that must not get lost. */
static int reach(struct store_worker *w, struct err *err)
{
  struct err why = ERR_NONE;
  if (w->wait_us && clock_mono_us() < w->next_us)
    return err_set(err, -ENOTCONN, "the store is away");
  int r = w->store ? sql_run(w->store, "SELECT 1", &why) : store_open_postgres(w->url, &w->store, &why);
  if (r)
    return away(w, &why, err);
  if (w->away)
    log_info("the store is there again");
  w->away = false;
  w->wait_us = 0;
  return 0;
}

/* ---- requests ---- */

struct serving {
  struct store_worker *worker;
  uint64_t serial, id;
};

static int serve_node(struct store_worker *w, struct str packet, struct buf *out, struct err *err)
{
  struct node_record r;
  struct node_lease lease = {.us = (int64_t)wire_u64(packet, W_TIMEOUT, 0) * 1000000,
                             .keep_us = (int64_t)wire_u64(packet, W_LAST, 0) * HOUR_US};
  uint64_t wanted = 0;
  if (node_record_read(packet, &r) || lease.us <= 0)
    return err_set(err, -EPROTO, "malformed node");
  int e = wire_u64(packet, W_MODE, 0) ? node_begin(w->store, &r, &lease, &wanted, err)
                                      : node_renew(w->store, &r, &lease, &wanted, err);
  if (e == -ESTALE)
    w->self.n.epoch = 0;
  if (e)
    return e;
  w->self = r;
  wire_put_u64(out, W_RUN, r.n.epoch);
  wire_put_u64(out, W_STATE, wanted);
  return 0;
}

static void tell_node(const struct node_record *r, void *arg)
{
  const struct serving *s = arg;
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_ITEM, s->id, 0);
  node_record_put(&b, r);
  tell(s->worker, s->serial, &b);
}

static int serve(const struct serving *s, struct str packet, struct buf *out, struct err *err)
{
  struct store_worker *w = s->worker;
  struct str id = wire_get(packet, W_ID);
  int r = reach(w, err);
  if (r)
    return r;
  switch (wire_head(packet)->type) {
  case WIRE_STORE_NODE:
    return serve_node(w, packet, out, err);
  case WIRE_STORE_NODE_LIST:
    return node_each(w->store, id, tell_node, (void *)s, err);
  case WIRE_STORE_NODE_ORDER:
    return node_order(w->store, id, (enum node_status)wire_u64(packet, W_STATE, 0), err);
  default:
    return err_set(err, -ENOSYS, "the store process does not know this request");
  }
}

static void serve_one(struct store_worker *w, const struct packet *p)
{
  struct err err = ERR_NONE;
  struct str packet = str_make(p->p, p->n);
  struct serving s = {w, p->serial, wire_head(packet)->id};
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_REPLY, s.id, 0);
  int r = serve(&s, packet, &out, &err);
  if (r) {
    wire_begin(&out, WIRE_REPLY, s.id, r);
    wire_putz(&out, W_MESSAGE, err.msg);
  }
  tell(w, p->serial, &out);
}

static void leave(struct store_worker *w)
{
  struct err err = ERR_NONE;
  if (w->self.n.epoch && w->store && !w->away && node_leave(w->store, w->self.name, w->self.n.epoch, &err))
    log_warn("the node's lease was not given back and runs out by itself: %s", err.msg);
}

static void *work(void *arg)
{
  struct store_worker *w = arg;
  pthread_mutex_lock(&w->mutex);
  w->runs = true;
  pthread_cond_broadcast(&w->changed);
  while (!w->stopping) {
    if (!w->requests.list.n) {
      pthread_cond_wait(&w->changed, &w->mutex);
      continue;
    }
    struct packet p = w->requests.list.p[0];
    vec_remove(&w->requests.list, 0);
    pthread_mutex_unlock(&w->mutex);
    serve_one(w, &p);
    free(p.p);
    pthread_mutex_lock(&w->mutex);
  }
  pthread_mutex_unlock(&w->mutex);
  leave(w);
  return NULL;
}

/* ---- beginning and end ---- */

struct store_worker *store_worker_new(uv_loop_t *loop, const char *url, store_answer_fn answer, void *arg)
{
  struct store_worker *w = xcalloc(1, sizeof(*w));
  w->url = url;
  w->answer = answer;
  w->arg = arg;
  pthread_mutex_init(&w->mutex, NULL);
  pthread_cond_init(&w->changed, NULL);
  uv_async_init(loop, &w->wake, hand_out);
  w->wake.data = w;
  return w;
}

int store_worker_start(struct store_worker *w, struct err *err)
{
  int e = pthread_create(&w->thread, NULL, work, w);
  if (e)
    return err_set(err, -e, "thread of the store: %s", strerrordesc_np(e));
  pthread_mutex_lock(&w->mutex);
  while (!w->runs)
    pthread_cond_wait(&w->changed, &w->mutex);
  pthread_mutex_unlock(&w->mutex);
  return 0;
}

int store_worker_add(struct store_worker *w, uint64_t serial, struct str packet)
{
  pthread_mutex_lock(&w->mutex);
  bool room = w->requests.list.n < WAITING_MAX;
  if (room)
    push(&w->requests, serial, packet);
  pthread_cond_signal(&w->changed);
  pthread_mutex_unlock(&w->mutex);
  return room ? 0 : -ENOBUFS;
}

void store_worker_stop(struct store_worker *w, unsigned ms)
{
  struct timespec until;
  pthread_mutex_lock(&w->mutex);
  w->stopping = true;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->mutex);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += ms / 1000;
  pthread_timedjoin_np(w->thread, NULL, &until);
}
