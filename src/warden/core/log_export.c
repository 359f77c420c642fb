/* SPDX-License-Identifier: Apache-2.0 */
/* log_export.c - see log_export.h. An exporter that does not read gets no further rings until it does. */
#include "warden/core/log_export.h"

#include "warden/core/box_state.h"
#include "warden/core/warden_state.h"
#include "wire/box_socket.h"
#include "wire/ipc.h"
#include "wire/wire.h"

#define WAITING_MAX ((size_t)64 << 10) /* bytes for an exporter that does not read */

static void exporter_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  if (fd >= 0)
    close(fd);
}

static void exporter_closed(struct ipc *l, void *arg)
{
  struct warden *w = arg;
  if (w->log_export == l)
    w->log_export = NULL;
  ipc_free(l);
}

static const struct ipc_ops exporter_ops = {exporter_packet, exporter_closed};

void log_export_link(struct warden *w, int fd)
{
  box_socket_guard(fd);
  ipc_free(w->log_export);
  w->log_export = ipc_new(w->loop, fd, &exporter_ops, w);
  ipc_guard(w->log_export);
}

static int tell(struct box *b, int fd)
{
  struct ipc *l = b->warden->log_export;
  cleanup_buf struct buf p = BUF_INIT(1024);
  wire_begin(&p, WIRE_OTLP_LOG, 0, 0);
  wire_putz(&p, W_ID, b->row.id);
  wire_putz(&p, W_TEAM, b->row.team);
  wire_put_u64(&p, W_FROM, (uint64_t)b->row.started_us);
  return ipc_send(l, buf_str(&p), fd);
}

/* A box whose create is under way has no id of a client's yet. */
void log_export_begin(struct box *b)
{
  struct ipc *l = b->warden->log_export;
  if (!l || !b->known || b->log_exported == ipc_serial(l) || ipc_queued(l) > WAITING_MAX)
    return;
  if (!tell(b, b->log_fd))
    b->log_exported = ipc_serial(l);
}

void log_export_end(struct box *b)
{
  struct ipc *l = b->warden->log_export;
  if (l && b->log_exported == ipc_serial(l))
    tell(b, -1);
  b->log_exported = 0;
}
