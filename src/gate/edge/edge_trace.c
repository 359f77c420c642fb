/* SPDX-License-Identifier: Apache-2.0 */
/* edge_trace.c - see edge_trace.h. */
#include "gate/edge/edge_trace.h"

bool cell_is(unsigned port, struct str path)
{
  return port == INTERPRETER_PORT && str_is(path, "/execute");
}

const uint8_t *cell_trace_headed(struct gate *g, const struct http_head *h, bool cell, int status, struct cell_trace *t)
{
  t->status = (unsigned)status;
  t->headed_us = clock_mono_us();
  t->on = cell && tracing_begin(g, h, &t->context);
  return t->on ? t->context.trace : NULL;
}

void cell_trace_end(struct gate *g, const struct cell_trace *t, int64_t began_us, const char *box, const char *team)
{
  int64_t now = clock_mono_us();
  struct span s = {.context = t->context,
                   .name = STR("cell"),
                   .route = STR("/execute"),
                   .box = str_of(box),
                   .team = str_of(team),
                   .status = t->status};
  if (!t->on)
    return;
  span_phase_add(&s, "connect", began_us, t->asked_us);
  span_phase_add(&s, "kernel", t->asked_us, t->headed_us);
  span_phase_add(&s, "stream", t->headed_us, now);
  tracing_end(g, &s, began_us, now);
}
