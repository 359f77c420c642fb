/* SPDX-License-Identifier: Apache-2.0 */
/* warden_client.c - see warden_client.h. A request stays in the table until its reply comes; when the link breaks the
 * supervisor sends a new one and everything open is sent again. */
#include "gate/warden_client.h"

struct warden_request {
  struct gate *gate;
  uint64_t id;
  char *packet;
  size_t n;
  warden_reply_fn on_item, on_reply;
  void *arg;
};

static struct str id_key(const uint64_t *id)
{
  return (struct str){(const char *)id, sizeof(*id)};
}

static void warden_request_free(struct warden_request *q)
{
  map_del(&q->gate->calls, id_key(&q->id));
  explicit_bzero(q->packet, q->n); /* it may hold a secret's value */
  free(q->packet);
  free(q);
}

static void answered(struct gate *g, struct str packet, int fd);

/* Later: a caller of warden_call does not expect a reply before it has the request's number. */
static void refuse_unsent(uv_timer_t *t)
{
  struct gate *g = t->data;
  cleanup_buf struct buf b = BUF_INIT(1024);
  for (size_t i = 0; i < g->unsent.n; i++) {
    wire_begin(&b, WIRE_REPLY, g->unsent.p[i], -ENOBUFS);
    wire_putz(&b, W_MESSAGE, "the server is overloaded; try again in a moment");
    answered(g, buf_str(&b), -1);
  }
  g->unsent.n = 0;
}

static void warden_request_send(struct gate *g, const struct warden_request *q)
{
  int r = ipc_send(g->warden, (struct str){q->packet, q->n}, -1);
  if (!r || r == -EPIPE) /* a link that broke: sent again on the next one */
    return;
  log_error("request of %zu bytes to the warden not sent: %s", q->n, strerrordesc_np(-r));
  vec_push(&g->unsent, q->id);
  uv_timer_start(&g->unsent_timer, refuse_unsent, 0, 0);
}

uint64_t warden_call(struct gate *g, struct buf *b, warden_reply_fn on_item, warden_reply_fn on_reply, void *arg)
{
  struct warden_request *q = xcalloc(1, sizeof(*q));
  q->gate = g;
  q->id = ++g->next_call;
  q->on_item = on_item;
  q->on_reply = on_reply;
  q->arg = arg;
  memcpy(b->p + offsetof(struct wire_head, id), &q->id, sizeof(q->id));
  q->n = b->n;
  q->packet = xmalloc(b->n);
  memcpy(q->packet, b->p, b->n);
  map_put(&g->calls, id_key(&q->id), q);
  if (g->warden && g->greeted)
    warden_request_send(g, q);
  return q->id;
}

void warden_call_cancel(struct gate *g, uint64_t id)
{
  struct warden_request *q = map_get(&g->calls, id_key(&id));
  if (q)
    warden_request_free(q);
}

static void resend_all(struct gate *g)
{
  void *value;
  for (size_t i = 0; map_next(&g->calls, &i, NULL, &value);) {
    struct warden_request *q = value;
    memcpy(q->packet + offsetof(struct wire_head, status), &(int32_t){WIRE_AGAIN}, sizeof(int32_t));
    warden_request_send(g, q);
  }
}

static void greet(struct gate *g, struct str packet, int fd)
{
  id_filter_free(g->ids); /* that of a warden before this one tells nothing of new boxes */
  g->ids = fd >= 0 ? id_filter_attach(fd) : NULL;
  if (fd >= 0 && !g->ids)
    log_warn("the warden's filter of sandbox IDs is unusable; all questions for routes count");
  if (fd >= 0)
    close(fd);
  g->admin_on = wire_u64(packet, W_ADMIN, 0) != 0;
  wire_copyz(packet, W_DOMAIN, g->domain, sizeof(g->domain));
  g->greeted = true;
  resend_all(g);
  g->events->connected(g);
}

static void answered(struct gate *g, struct str packet, int fd)
{
  const struct wire_head *h = wire_head(packet);
  struct warden_request *q = map_get(&g->calls, id_key(&h->id));
  struct warden_reply a = {h->status, packet, fd};
  if (!q) {
    if (fd >= 0)
      close(fd);
    return;
  }
  warden_reply_fn fn = h->type == WIRE_ITEM ? q->on_item : q->on_reply;
  void *arg = q->arg;
  if (h->type == WIRE_REPLY)
    warden_request_free(q);
  if (fn)
    fn(&a, arg);
}

static void on_warden_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct gate *g = arg;
  static _Alignas(8) char copy[WIRE_MAX]; /* a callback may read the link again */
  if (wire_check(packet))
    return;
  memcpy(copy, packet.p, packet.n);
  packet.p = copy;
  switch (wire_head(packet)->type) {
  case WIRE_HELLO:
    greet(g, packet, fd);
    break;
  case WIRE_REPLY:
  case WIRE_ITEM:
    answered(g, packet, fd);
    break;
  case WIRE_BOX_HOLD:
    g->events->box_held(g, wire_get(packet, W_ID));
    break;
  case WIRE_BOX_ENDED:
    g->events->box_ended(g, packet);
    break;
  case WIRE_KEYS_CHANGED:
    g->events->keys_changed(g);
    break;
  }
}

static void on_warden_closed(struct ipc *l, void *arg)
{
  struct gate *g = arg;
  if (g->warden == l) {
    g->warden = NULL;
    g->greeted = false;
  }
  ipc_free(l);
}

static const struct ipc_ops warden_link_ops = {on_warden_packet, on_warden_closed};

void warden_attach(struct gate *g, int fd, const struct warden_events *events)
{
  g->events = events;
  if (g->warden)
    ipc_free(g->warden);
  g->greeted = false;
  g->warden = ipc_new(g->loop, fd, &warden_link_ops, g);
}
