/* ask.c - questions to the warden and their answers. A question stays in the table until it is answered; when the link
 * breaks the supervisor sends a new one and everything open is asked again, which is safe because the warden's
 * questions are idempotent. */
#include "gate/edge.h"

struct question {
  struct gate *gate;
  uint64_t id;
  char *packet;
  size_t n;
  answer_fn on_item, on_reply;
  void *arg;
};

static struct str id_key(const uint64_t *id)
{
  return (struct str){(const char *)id, sizeof(*id)};
}

static void question_free(struct question *q)
{
  map_del(&q->gate->asks, id_key(&q->id));
  free(q->packet);
  free(q);
}

uint64_t ask_warden(struct gate *g, struct buf *b, answer_fn on_item, answer_fn on_reply, void *arg)
{
  struct question *q = xcalloc(1, sizeof(*q));
  q->gate = g;
  q->id = ++g->next_ask;
  q->on_item = on_item;
  q->on_reply = on_reply;
  q->arg = arg;
  memcpy(b->p + offsetof(struct wire_head, id), &q->id, sizeof(q->id));
  q->n = b->n;
  q->packet = xmalloc(b->n);
  memcpy(q->packet, b->p, b->n);
  map_put(&g->asks, id_key(&q->id), q);
  if (g->warden && g->greeted)
    link_send(g->warden, buf_str(b), -1);
  return q->id;
}

void ask_forget(struct gate *g, uint64_t id)
{
  struct question *q = map_get(&g->asks, id_key(&id));
  if (q)
    question_free(q);
}

static void resend_all(struct gate *g)
{
  void *value;
  for (size_t i = 0; map_next(&g->asks, &i, NULL, &value);) {
    struct question *q = value;
    memcpy(q->packet + offsetof(struct wire_head, status), &(int32_t){WIRE_AGAIN}, sizeof(int32_t));
    link_send(g->warden, (struct str){q->packet, q->n}, -1);
  }
}

static void greet(struct gate *g, struct str packet)
{
  wire_copyz(packet, W_SECRET, g->secret, sizeof(g->secret));
  wire_copyz(packet, W_DOMAIN, g->domain, sizeof(g->domain));
  g->greeted = true;
  resend_all(g);
  edge_recheck(g);
}

static void answered(struct gate *g, struct str packet, int fd)
{
  const struct wire_head *h = wire_head(packet);
  struct question *q = map_get(&g->asks, id_key(&h->id));
  struct answer a = {h->status, packet, fd};
  if (!q) {
    if (fd >= 0)
      close(fd);
    return;
  }
  answer_fn fn = h->type == WIRE_ITEM ? q->on_item : q->on_reply;
  void *arg = q->arg;
  if (h->type == WIRE_REPLY)
    question_free(q);
  if (fn)
    fn(&a, arg);
}

static void ask_packet(struct link *l, struct str packet, int fd, void *arg)
{
  struct gate *g = arg;
  static _Alignas(8) char copy[WIRE_MAX]; /* a callback may read the link again */
  if (wire_check(packet))
    return;
  memcpy(copy, packet.p, packet.n);
  packet.p = copy;
  switch (wire_head(packet)->type) {
  case WIRE_HELLO:
    greet(g, packet);
    break;
  case WIRE_REPLY:
  case WIRE_ITEM:
    answered(g, packet, fd);
    break;
  case WIRE_BOX_HOLD:
    gate_box_held(g, wire_get(packet, W_ID));
    break;
  case WIRE_BOX_ENDED:
    gate_box_ended(g, wire_get(packet, W_ID));
    break;
  case WIRE_KEYS_CHANGED:
    gate_keys_changed(g);
    break;
  }
}

static void ask_closed(struct link *l, void *arg)
{
  struct gate *g = arg;
  if (g->warden == l) {
    g->warden = NULL;
    g->greeted = false;
  }
  link_free(l);
}

const struct link_ops ask_ops = {ask_packet, ask_closed};

void ask_link(struct gate *g, int fd)
{
  if (g->warden)
    link_free(g->warden);
  g->greeted = false;
  g->warden = link_new(g->loop, fd, &ask_ops, g);
}
