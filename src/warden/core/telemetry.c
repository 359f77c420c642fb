/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.c - see telemetry.h. An exporter that does not read gets no further rings until it does. */
#include "warden/core/telemetry.h"

#include "warden/core/box_state.h"
#include "warden/core/warden_state.h"
#include "wire/box_socket.h"
#include "wire/ipc.h"
#include "wire/wire.h"

#define RINGS_WAITING ((size_t)64 << 10) /* bytes for an exporter that does not read: no further rings */
#define SPANS_WAITING ((size_t)1 << 20)  /* nor spans */

static void exporter_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  if (fd >= 0)
    close(fd);
}

static void exporter_closed(struct ipc *l, void *arg)
{
  struct warden *w = arg;
  if (w->exporter == l)
    w->exporter = NULL;
  ipc_free(l);
}

static const struct ipc_ops exporter_ops = {exporter_packet, exporter_closed};

void telemetry_link(struct warden *w, int fd)
{
  box_socket_guard(fd);
  ipc_free(w->exporter);
  w->exporter = ipc_new(w->loop, fd, &exporter_ops, w);
  ipc_guard(w->exporter);
}

static int tell(struct box *b, int fd)
{
  struct ipc *l = b->warden->exporter;
  cleanup_buf struct buf p = BUF_INIT(1024);
  wire_begin(&p, WIRE_OTLP_LOG, 0, 0);
  wire_putz(&p, W_ID, b->row.id);
  wire_putz(&p, W_TEAM, b->row.team);
  wire_put_u64(&p, W_FROM, (uint64_t)b->row.started_us);
  return ipc_send(l, buf_str(&p), fd);
}

/* A box whose create is under way has no id of a client's yet. */
void telemetry_log_begin(struct box *b)
{
  struct ipc *l = b->warden->exporter;
  if (!l || !b->warden->config->otlp_logs || !b->known || b->log_exported == ipc_serial(l) ||
      ipc_queued(l) > RINGS_WAITING)
    return;
  if (!tell(b, b->log_fd))
    b->log_exported = ipc_serial(l);
}

void telemetry_log_end(struct box *b)
{
  struct ipc *l = b->warden->exporter;
  if (l && b->log_exported == ipc_serial(l))
    tell(b, -1);
  b->log_exported = 0;
}

void telemetry_span(struct warden *w, struct span *s)
{
  uint8_t dice;
  if (!w->exporter || !w->config->otlp_traces || ipc_queued(w->exporter) > SPANS_WAITING)
    return;
  random_bytes(&dice, sizeof(dice));
  if (dice * 100u >= w->config->otlp_sample_percent * 256u)
    return;
  random_bytes(s->context.trace, sizeof(s->context.trace));
  random_bytes(s->id, sizeof(s->id));
  span_shift(s, clock_wall_us() - clock_mono_us());
  cleanup_buf struct buf b = BUF_INIT(4096);
  span_pack(&b, s);
  if (!buf_failed(&b))
    ipc_send(w->exporter, buf_str(&b), -1);
}
