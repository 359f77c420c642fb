/* SPDX-License-Identifier: Apache-2.0 */
/* exporter.c - see exporter.h: the loop, the supervisor's words, and what gates send. */
#include "exporter/exporter.h"

#include "exporter/box_logs.h"
#include "exporter/exporter_role.h"
#include "exporter/otlp_json.h"
#include "wire/control.h"
#include "wire/ipc.h"
#include "wire/wire.h"
#include <malloc.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#define BATCH_SPANS 512
#define BATCH_BYTES ((size_t)4 << 20)
#define PARTS_BYTES ((size_t)64 << 20) /* of one request that comes in parts */
#define STOP_MS     2000

struct exporter {
  const struct exporter_config *config;
  uv_loop_t *loop;
  struct ipc *control;
  struct delivery *delivery;
  struct box_logs *logs;
  struct ipc *warden; /* or NULL */
  struct buf spans;   /* a batch, begun where spans_n > 0 */
  struct jw writer;
  size_t spans_n;
  uv_timer_t timer;
  char host[65];
};

struct source {
  struct exporter *exporter;
  struct buf parts; /* of a request under way */
};

/* ---- spans ---- */

static void flush(struct exporter *e)
{
  uv_timer_stop(&e->timer);
  if (!e->spans_n)
    return;
  otlp_spans_end(&e->writer);
  delivery_add(e->delivery, "/v1/traces", &e->spans);
  buf_clear(&e->spans);
  e->spans_n = 0;
}

static void time_to_flush(uv_timer_t *t)
{
  flush(t->data);
}

static void take_span(struct exporter *e, struct str packet)
{
  struct span s;
  if (span_read(packet, &s))
    return;
  if (!e->spans_n) {
    buf_clear(&e->spans);
    e->writer = JW(&e->spans);
    otlp_spans_begin(&e->writer, e->host);
    uv_timer_start(&e->timer, time_to_flush, e->config->batch_ms, 0);
  }
  otlp_span_add(&e->writer, &s);
  if (++e->spans_n >= BATCH_SPANS)
    flush(e);
}

/* ---- requests that a gate has finished: metrics ---- */

static void take_part(struct source *s, struct str packet)
{
  buf_adds(&s->parts, wire_get(packet, W_BODY));
  if (!wire_u64(packet, W_LAST, 0))
    return;
  if (!buf_failed(&s->parts))
    delivery_add(s->exporter->delivery, "/v1/metrics", &s->parts);
  buf_clear(&s->parts);
}

static void gate_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct source *s = arg;
  if (fd >= 0)
    close(fd);
  if (wire_check(packet))
    return;
  if (wire_head(packet)->type == WIRE_SPAN)
    take_span(s->exporter, packet);
  else if (wire_head(packet)->type == WIRE_OTLP_METRICS)
    take_part(s, packet);
}

static void gate_closed(struct ipc *l, void *arg)
{
  struct source *s = arg;
  ipc_free(l);
  buf_free(&s->parts);
  free(s);
}

static const struct ipc_ops gate_ops = {gate_packet, gate_closed};

/* ---- the warden: spans and rings ---- */

static void warden_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct exporter *e = arg;
  if (!wire_check(packet) && wire_head(packet)->type == WIRE_OTLP_LOG) {
    box_logs_take(e->logs, packet, fd);
    return;
  }
  if (fd >= 0)
    close(fd);
  take_span(e, packet);
}

static void warden_closed(struct ipc *l, void *arg)
{
  struct exporter *e = arg;
  if (e->warden == l) {
    e->warden = NULL;
    box_logs_orphaned(e->logs);
  }
  ipc_free(l);
}

static const struct ipc_ops warden_ops = {warden_packet, warden_closed};

static void take_warden(struct exporter *e, int fd)
{
  if (e->warden)
    box_logs_orphaned(e->logs);
  ipc_free(e->warden);
  e->warden = ipc_new(e->loop, fd, &warden_ops, e);
}

/* ---- the supervisor ---- */

static void take_gate(struct exporter *e, int fd)
{
  struct source *s = xcalloc(1, sizeof(*s));
  s->exporter = e;
  s->parts = BUF_INIT(PARTS_BYTES);
  ipc_guard(ipc_new(e->loop, fd, &gate_ops, s));
}

static void control_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct exporter *e = arg;
  if (packet.p[0] == CONTROL_LINK && fd >= 0)
    take_gate(e, fd);
  else if (packet.p[0] == CONTROL_EXPORTER && fd >= 0)
    take_warden(e, fd);
  else if (fd >= 0)
    close(fd);
  control_settings(packet);
  if (packet.p[0] == CONTROL_STOP)
    uv_stop(e->loop);
}

static void control_closed(struct ipc *l, void *arg)
{
  struct exporter *e = arg;
  uv_stop(e->loop);
}

static const struct ipc_ops control_ops = {control_packet, control_closed};

/* ---- start ---- */

int exporter_main(const struct exporter_config *config)
{
  static uv_loop_t loop;
  static struct exporter e; /* to the process's end */
  struct err err = ERR_NONE;
  struct utsname u;
  prctl(PR_SET_NAME, "cloche-exporter");
  clearenv();
  setenv("RES_OPTIONS", "timeout:2 attempts:2", 1);
  mallopt(M_ARENA_MAX, 2);
  uv_loop_init(&loop);
  e = (struct exporter){.config = config, .loop = &loop, .spans = BUF_INIT(BATCH_BYTES)};
  if (!uname(&u))
    snprintf(e.host, sizeof(e.host), "%s", u.nodename);
  uv_timer_init(&loop, &e.timer);
  e.timer.data = &e;
  e.control = ipc_new(&loop, CONTROL_FD, &control_ops, &e);
  e.delivery = delivery_new(config, &err);
  e.logs = box_logs_new(&loop, e.delivery, e.host, config);
  int r = e.delivery ? confine_rights(&exporter_role, config->uid, &err) : err.code;
  r = r ? r : delivery_start(e.delivery, &err);
  if (r || confine_filter(&exporter_role, config->uid, &err))
    return control_failed(e.control, &err);
  ipc_send(e.control, (struct str){(char[]){CONTROL_READY}, 1}, -1);
  uv_run(&loop, UV_RUN_DEFAULT);
  flush(&e);
  box_logs_flush(e.logs);
  delivery_stop(e.delivery, STOP_MS);
  return 0;
}
