/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - see request.h. */
#include "warden/rpc/request.h"

#include "warden/box/box.h"
#include "warden/core/context.h"

void reply_begin(struct request *q, enum wire_type type, int status)
{
  wire_begin(q->out, type, q->id, status);
}

void reply_send_fd(struct request *q, int fd)
{
  reply_send_on(q->ipc, q->out, fd);
}

void reply_send(struct request *q)
{
  const struct wire_head *h = (const struct wire_head *)q->out->p;
  if (h && h->type == WIRE_ITEM) {
    int r = buf_failed(q->out) ? buf_failed(q->out) : ipc_send_bulk(q->ipc, buf_str(q->out));
    q->lost = q->lost ? q->lost : r;
    return;
  }
  if (q->lost && q->lost != -EPIPE) {
    wire_begin(q->out, WIRE_REPLY, q->id, -ENOBUFS);
    wire_putz(q->out, W_MESSAGE, "the answer is larger than this server can send at once; ask for less");
  }
  reply_send_on(q->ipc, q->out, -1);
}

void reply_error(struct request *q, int status, const char *message)
{
  reply_begin(q, WIRE_REPLY, status);
  wire_putz(q->out, W_MESSAGE, message);
  reply_send(q);
}

void reply_err(struct request *q, const struct err *err)
{
  reply_error(q, err->code ? err->code : -EIO, err->msg);
}

void reply_ok(struct request *q)
{
  reply_begin(q, WIRE_REPLY, 0);
  reply_send(q);
}

struct origin request_origin(const struct request *q)
{
  struct origin origin = {.ipc = q->ipc,
                          .serial = ipc_serial(q->ipc),
                          .id = q->id,
                          .again = wire_head(q->packet)->status == WIRE_AGAIN,
                          .proven = q->proven};
  struct str client = wire_get(q->packet, W_CLIENT);
  if (client.n == sizeof(origin.client))
    memcpy(origin.client, client.p, client.n);
  return origin;
}

struct box *request_box(struct request *q)
{
  struct str id = wire_get(q->packet, W_ID);
  struct box *b = box_find(q->warden, id, q->team);
  if (b)
    return b;
  char cause[256] = "";
  int64_t when = 0;
  reply_begin(q, WIRE_REPLY, -ENOENT);
  if (!store_cause(warden_store(q->warden), id, q->team, cause, sizeof(cause), &when)) {
    wire_putz(q->out, W_CAUSE, q->proven == BY_ANYONE ? box_cause_for_anyone(cause) : cause);
    wire_put_u64(q->out, W_END, (uint64_t)when);
  }
  reply_send(q);
  return NULL;
}
