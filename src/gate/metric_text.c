/* SPDX-License-Identifier: Apache-2.0 */
/* metric_text.c - see metric_sink.h. Label values may be words that a team chose: they are escaped, and bytes that are
 * no UTF-8 are replaced. */
#include "gate/metric_sink.h"

#include <math.h>
#include <stdio.h>

/* From a warm cell to a very slow start. */
const uint64_t metric_ends_us[METRICS_BUCKETS] = {250,   500,    1000,   2000,    4000,    8000,     16000,   32000,
                                                  64000, 128000, 256000, 1000000, 4000000, 16000000, 60000000};

void exemplar_put(struct exemplar *e, const uint8_t trace[16], uint64_t value_us)
{
  __atomic_store_n(&e->seq, e->seq | 1, __ATOMIC_RELEASE);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  memcpy(e->trace, trace, sizeof(e->trace));
  e->value_us = value_us;
  e->wall_us = (uint64_t)clock_wall_us();
  __atomic_store_n(&e->seq, (e->seq | 1) + 1, __ATOMIC_RELEASE);
}

bool exemplar_get(const struct exemplar *e, struct exemplar *out)
{
  uint64_t before = __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE);
  memcpy(out, e, sizeof(*out));
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return !(before & 1) && __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) == before && out->wall_us;
}

static void put_value(struct buf *b, double v)
{
  if (v >= 0 && v < 9e15 && v == floor(v))
    buf_addu(b, (uint64_t)v);
  else
    buf_addf(b, "%.9g", v);
}

static void put_label(struct buf *b, struct str value)
{
  cleanup_buf struct buf clean = BUF_INIT(4096);
  if (!utf8_valid(value) && !utf8_clean(value, &clean))
    value = buf_str(&clean);
  for (size_t i = 0; i < value.n; i++) {
    char c = value.p[i];
    if (c == '\n')
      buf_addz(b, "\\n");
    else if (c == '"' || c == '\\')
      buf_addf(b, "\\%c", c);
    else
      buf_addc(b, c);
  }
}

static void put_labels(struct buf *b, const struct metric_label *labels, size_t n, const char *le)
{
  if (!n && !le)
    return;
  for (size_t i = 0; i < n; i++) {
    buf_addf(b, "%c%s=\"", i ? ',' : '{', labels[i].name);
    put_label(b, labels[i].value);
    buf_addc(b, '"');
  }
  if (le)
    buf_addf(b, "%cle=\"%s\"", n ? ',' : '{', le);
  buf_addc(b, '}');
}

static void text_family(struct metric_sink *s, const char *name, enum metric_kind kind, const char *unit,
                        const char *help)
{
  static const char *const kinds[] = {"gauge", "counter", "histogram"};
  struct text_sink *t = (struct text_sink *)s;
  t->name = name;
  t->total = kind == METRIC_COUNTER ? "_total" : "";
  const char *tail = t->open ? "" : t->total;
  buf_addf(t->out, "# HELP cloche_%s%s %s\n# TYPE cloche_%s%s %s\n", name, tail, help, name, tail, kinds[kind]);
}

static void text_value(struct metric_sink *s, const struct metric_label *labels, size_t n, double v)
{
  struct text_sink *t = (struct text_sink *)s;
  buf_addf(t->out, "cloche_%s%s", t->name, t->total);
  put_labels(t->out, labels, n, NULL);
  buf_addc(t->out, ' ');
  put_value(t->out, v);
  buf_addc(t->out, '\n');
}

static void put_exemplar(struct buf *b, const struct exemplar *e)
{
  char id[33];
  struct exemplar got;
  if (!exemplar_get(e, &got))
    return;
  hex_encode(got.trace, sizeof(got.trace), id);
  buf_addf(b, " # {trace_id=\"%s\"} %.6f %.3f", id, (double)got.value_us / 1e6, (double)got.wall_us / 1e6);
}

static void text_histogram(struct metric_sink *s, const struct metric_label *labels, size_t n,
                           const struct histogram *h, const struct exemplar *exemplars)
{
  struct text_sink *t = (struct text_sink *)s;
  uint64_t below = 0;
  for (size_t i = 0; i <= METRICS_BUCKETS; i++) {
    char le[32] = "+Inf";
    if (i < METRICS_BUCKETS)
      snprintf(le, sizeof(le), "%g", (double)metric_ends_us[i] / 1e6);
    below += h->buckets[i];
    buf_addf(t->out, "cloche_%s_bucket", t->name);
    put_labels(t->out, labels, n, le);
    buf_addf(t->out, " %llu", (unsigned long long)below);
    if (t->open && exemplars)
      put_exemplar(t->out, &exemplars[i]);
    buf_addc(t->out, '\n');
  }
  buf_addf(t->out, "cloche_%s_sum", t->name);
  put_labels(t->out, labels, n, NULL);
  buf_addf(t->out, " %.6f\ncloche_%s_count", (double)h->sum_us / 1e6, t->name);
  put_labels(t->out, labels, n, NULL);
  buf_addf(t->out, " %llu\n", (unsigned long long)below);
}

void text_sink_init(struct text_sink *t, struct buf *out, bool open)
{
  *t = (struct text_sink){
      .sink = {.family = text_family, .value = text_value, .histogram = text_histogram}, .out = out, .open = open};
}

void text_sink_end(struct text_sink *t)
{
  if (t->open)
    buf_addz(t->out, "# EOF\n");
}

/* Prometheus lists what it takes with weights; who names OpenMetrics 1.0 at all, with a weight, can read it. */
bool text_sink_wanted(struct str accept)
{
  struct str part, type, params;
  while (accept.n) {
    str_cut(accept, ',', &part, &accept);
    str_cut(part, ';', &type, &params);
    if (!str_ieq(str_trim(type), STR("application/openmetrics-text")))
      continue;
    bool never = false, known = true;
    while (params.n) {
      struct str param, name, value;
      str_cut(params, ';', &param, &params);
      str_cut(param, '=', &name, &value);
      name = str_trim(name), value = str_trim(value);
      never |= str_ieq(name, STR("q")) && (str_is(value, "0") || str_is(value, "0.0"));
      known &= !str_ieq(name, STR("version")) || str_starts(value, STR("1.")) || str_is(value, "0.0.1");
    }
    if (!never && known)
      return true;
  }
  return false;
}
