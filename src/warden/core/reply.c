/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - see reply.h. */
#include "warden/core/reply.h"

#include "warden/core/warden_state.h"

struct reply_links {
  VEC(struct ipc *) open;
};

static struct reply_links *links_of(struct warden *w)
{
  w->links = w->links ? w->links : xcalloc(1, sizeof(*w->links));
  return w->links;
}

void reply_link_add(struct warden *w, struct ipc *ipc)
{
  vec_push(&links_of(w)->open, ipc);
}

void reply_link_remove(struct warden *w, struct ipc *ipc)
{
  struct reply_links *l = links_of(w);
  for (size_t i = 0; i < l->open.n; i++)
    if (l->open.p[i] == ipc)
      vec_remove_swap(&l->open, i);
}

static void (*on_end)(struct ipc *ipc, struct str packet);

void reply_on_end(void (*ended)(struct ipc *ipc, struct str packet))
{
  on_end = ended;
}

void reply_send_on(struct ipc *ipc, const struct buf *b, int fd)
{
  if (on_end && !buf_failed(b) && wire_head(buf_str(b))->type == WIRE_REPLY)
    on_end(ipc, buf_str(b));
  int r = buf_failed(b) ? buf_failed(b) : ipc_send(ipc, buf_str(b), fd);
  if (r && r != -EPIPE)
    log_error("reply of %zu bytes not sent: %s", b->n, strerrordesc_np(-r));
}

bool reply_possible(struct warden *w, struct origin origin)
{
  const struct reply_links *l = links_of(w);
  for (size_t i = 0; i < l->open.n; i++)
    if (l->open.p[i] == origin.ipc)
      return ipc_serial(origin.ipc) == origin.serial;
  return false;
}

void reply_packet(struct warden *w, struct origin origin, const struct buf *b)
{
  if (reply_possible(w, origin))
    reply_send_on(origin.ipc, b, -1);
}

void reply_end(struct warden *w, struct origin origin, int status, const struct err *err)
{
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_REPLY, origin.id, status);
  if (status && err)
    wire_putz(&out, W_MESSAGE, err->msg);
  reply_packet(w, origin, &out);
}

void reply_broadcast(struct warden *w, struct str packet)
{
  const struct reply_links *l = links_of(w);
  for (size_t i = 0; i < l->open.n; i++)
    ipc_send(l->open.p[i], packet, -1);
}
