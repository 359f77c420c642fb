/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chart_echo - reads a JSON array of charts and writes each again from the library's structs alone. tests/sdk compares
 * both for charts that have every field of sdk/charts/schema/chart.json: a field that no struct holds is missing here.
 */
#include <stdio.h>
#include <unistd.h>
#include "internal.h"

static struct buf out;

/* A member's name; the first one of an object has no comma before it. */
static void name(const char *key)
{
  if (out.len && out.data[out.len - 1] != '{')
    buf_puts(&out, ",");
  buf_json(&out, key);
  buf_puts(&out, ":");
}

static void put_text(const char *key, const char *text)
{
  name(key);
  if (text)
    buf_json(&out, text);
  else
    buf_puts(&out, "null");
}

static void put_int(const char *key, int64_t value)
{
  name(key);
  buf_printf(&out, "%lld", (long long)value);
}

static void put_double(const char *key, double value)
{
  name(key);
  buf_printf(&out, "%.17g", value);
}

static void put_bool(const char *key, bool value)
{
  name(key);
  buf_puts(&out, value ? "true" : "false");
}

static void value(const struct cloche_value *v)
{
  if (!v->text)
    buf_puts(&out, "null");
  else if (v->is_number)
    buf_puts(&out, v->text);
  else
    buf_json(&out, v->text);
}

static void put_value(const char *key, struct cloche_value v)
{
  name(key);
  value(&v);
}

static void values(const struct cloche_value *items, size_t count)
{
  buf_puts(&out, items ? "[" : "null");
  for (size_t i = 0; i < count; i++) {
    buf_puts(&out, i ? "," : "");
    value(&items[i]);
  }
  buf_puts(&out, items ? "]" : "");
}

static void rows(const struct cloche_rows *r)
{
  buf_puts(&out, r->items ? "[" : "null");
  for (size_t i = 0; i < r->count; i++) {
    buf_puts(&out, i ? "," : "");
    values(r->items[i].items, r->items[i].count);
  }
  buf_puts(&out, r->items ? "]" : "");
}

static void put_values(const char *key, struct cloche_values v)
{
  name(key);
  values(v.items, v.count);
}

static void put_rows(const char *key, struct cloche_rows r)
{
  name(key);
  rows(&r);
}

static void put_paths(const char *key, struct cloche_paths p)
{
  name(key);
  buf_puts(&out, "[");
  for (size_t i = 0; i < p.count; i++) {
    buf_puts(&out, i ? "," : "");
    rows(&p.items[i]);
  }
  buf_puts(&out, "]");
}

static void put_axis(char letter, const struct cloche_axis *axis, bool ticks)
{
  char label[] = "x_label", unit[] = "x_unit", scale[] = "x_scale", marks[] = "x_ticks", texts[] = "x_tick_labels";
  label[0] = unit[0] = scale[0] = marks[0] = texts[0] = letter;
  put_text(label, axis->label);
  put_text(unit, axis->unit);
  if (!ticks)
    return;
  put_text(scale, axis->scale);
  put_values(marks, (struct cloche_values){axis->ticks, axis->tick_count});
  name(texts);
  buf_puts(&out, "[");
  for (size_t i = 0; i < axis->tick_label_count; i++) {
    buf_puts(&out, i ? "," : "");
    buf_json(&out, axis->tick_labels[i]);
  }
  buf_puts(&out, "]");
}

static void put_encoding(const struct cloche_detail_element *e)
{
  name("encoding");
  buf_puts(&out, "{");
  for (size_t i = 0; i < e->encoding_count; i++) {
    const struct cloche_channel *c = &e->encoding[i];
    name(c->name);
    buf_puts(&out, "{");
    put_text("field", c->field);
    put_text("type", c->type);
    put_text("title", c->title);
    put_text("aggregate", c->aggregate);
    put_bool("bin", c->bin);
    buf_puts(&out, "}");
  }
  buf_puts(&out, "}");
}

static void put_columns(const struct cloche_detail_element *e)
{
  name("columns");
  buf_puts(&out, "{");
  for (size_t i = 0; i < e->column_count; i++) {
    const struct cloche_column *c = &e->columns[i];
    if (c->rows.items)
      put_rows(c->name, c->rows);
    else
      put_values(c->name, c->values);
  }
  buf_puts(&out, "}");
}

static void heatmap(const struct cloche_detail_element *e)
{
  put_int("rows", e->row_total);
  put_int("columns", e->column_total);
  put_int("channels", e->channels);
  put_values("x", e->x);
  put_values("y", e->y);
  put_rows("values", e->values);
  put_value("value_min", e->value_min);
  put_value("value_max", e->value_max);
  put_text("colormap", e->colormap);
}

static void contour(const struct cloche_detail_element *e)
{
  put_value("level", e->level);
  put_value("upper", e->upper);
  put_paths("paths", e->paths);
}

static void plotly(const struct cloche_detail_element *e)
{
  put_text("trace", e->trace);
  put_text("mode", e->mode);
  put_text("orientation", e->orientation);
  put_columns(e);
}

static void detail_element(enum cloche_detail_type type, const struct cloche_detail_element *e)
{
  buf_puts(&out, "{");
  if (type != CLOCHE_DETAIL_CONTOUR)
    put_text("label", e->label);
  switch (type) {
  case CLOCHE_DETAIL_HISTOGRAM:
    put_rows("bins", e->bins);
    break;
  case CLOCHE_DETAIL_HEATMAP:
    heatmap(e);
    break;
  case CLOCHE_DETAIL_CONTOUR:
    contour(e);
    break;
  case CLOCHE_DETAIL_PLOTLY:
    plotly(e);
    break;
  case CLOCHE_DETAIL_ALTAIR:
    put_text("mark", e->mark);
    put_encoding(e);
    put_columns(e);
    break;
  case CLOCHE_DETAIL_ERROR_BAR:
    put_rows("points", e->points);
    put_rows("x_errors", e->x_errors);
    put_rows("y_errors", e->y_errors);
    break;
  case CLOCHE_DETAIL_POLAR:
    put_rows("points", e->points);
    put_values("widths", e->widths);
    put_values("bases", e->bases);
    break;
  default:
    put_rows("points", e->points);
    break;
  }
  buf_puts(&out, "}");
}

static void detail_elements(const char *key, enum cloche_detail_type type, const struct cloche_detail_element *items,
                            size_t count)
{
  name(key);
  buf_puts(&out, "[");
  for (size_t i = 0; i < count; i++) {
    buf_puts(&out, i ? "," : "");
    detail_element(type, &items[i]);
  }
  buf_puts(&out, "]");
}

static void put_sampled(const struct cloche_chart_detail *d)
{
  name("sampled");
  buf_puts(&out, "[");
  for (size_t i = 0; i < d->sampled_count; i++) {
    const struct cloche_sampled *s = &d->sampled[i];
    buf_puts(&out, i ? ",{" : "{");
    put_int("element", s->element);
    put_text("what", s->what);
    put_int("of", s->of);
    put_int("kept", s->kept);
    put_int("step", s->step);
    buf_puts(&out, "}");
  }
  buf_puts(&out, "]");
}

static void detail_words(const struct cloche_chart_detail *d)
{
  if (d->type == CLOCHE_DETAIL_HISTOGRAM || d->type == CLOCHE_DETAIL_AREA)
    put_text("orientation", d->orientation);
  if (d->type == CLOCHE_DETAIL_AREA)
    put_bool("stacked", d->stacked);
  if (d->type == CLOCHE_DETAIL_CONTOUR) {
    put_bool("filled", d->filled);
    put_values("levels", d->levels);
  }
  if (d->type == CLOCHE_DETAIL_POLAR) {
    put_text("of", d->of);
    put_double("theta_offset", d->theta_offset);
    put_double("theta_direction", d->theta_direction);
  }
}

static void put_detail(const struct cloche_chart_detail *d)
{
  bool space = d->type == CLOCHE_DETAIL_SCATTER_3D || d->type == CLOCHE_DETAIL_LINE_3D;
  bool ticks = d->type >= CLOCHE_DETAIL_HISTOGRAM && d->type <= CLOCHE_DETAIL_POLAR;
  name("cloche");
  buf_puts(&out, "{");
  put_text("type", d->type_name);
  if (d->type != CLOCHE_DETAIL_UNKNOWN) {
    put_axis('x', &d->x, ticks);
    put_axis('y', &d->y, ticks);
    if (space)
      put_axis('z', &d->z, false);
    detail_words(d);
    detail_elements("elements", d->type, d->elements, d->element_count);
    if (space || d->type == CLOCHE_DETAIL_AREA)
      detail_elements("lines", CLOCHE_DETAIL_LINE_3D, d->lines, d->line_count);
  }
  if (d->sampled)
    put_sampled(d);
  buf_puts(&out, "}");
}

static void points(const struct cloche_chart_element *e)
{
  name("points");
  buf_puts(&out, "[");
  for (size_t i = 0; i < e->point_count; i++) {
    buf_puts(&out, i ? "," : "");
    values((const struct cloche_value[]){e->points[i].x, e->points[i].y}, 2);
  }
  buf_puts(&out, "]");
}

static void element(enum cloche_chart_type type, const struct cloche_chart_element *e)
{
  buf_puts(&out, "{");
  put_text("label", e->label);
  if (type == CLOCHE_CHART_LINE || type == CLOCHE_CHART_SCATTER) {
    points(e);
  } else if (type == CLOCHE_CHART_BAR) {
    put_text("group", e->group);
    put_value("value", e->value);
  } else if (type == CLOCHE_CHART_PIE) {
    put_value("angle", e->angle);
    put_value("radius", e->radius);
  } else {
    put_value("min", e->min);
    put_value("first_quartile", e->first_quartile);
    put_value("median", e->median);
    put_value("third_quartile", e->third_quartile);
    put_value("max", e->max);
    put_values("outliers", (struct cloche_values){e->outliers, e->outlier_count});
  }
  buf_puts(&out, "}");
}

static void chart(const struct cloche_chart *c)
{
  bool ticks = c->type == CLOCHE_CHART_LINE || c->type == CLOCHE_CHART_SCATTER;
  buf_puts(&out, "{");
  put_text("type", c->type_name);
  put_text("title", c->title);
  if (ticks || c->type == CLOCHE_CHART_BAR || c->type == CLOCHE_CHART_BOX_AND_WHISKER) {
    put_axis('x', &c->x, ticks);
    put_axis('y', &c->y, ticks);
  }
  name("elements");
  buf_puts(&out, "[");
  for (size_t i = 0; i < c->element_count; i++) {
    buf_puts(&out, i ? "," : "");
    element(c->type, &c->elements[i]);
  }
  for (size_t i = 0; i < c->chart_count; i++) {
    buf_puts(&out, i ? "," : "");
    chart(&c->charts[i]);
  }
  buf_puts(&out, "]");
  if (c->detail)
    put_detail(c->detail);
  buf_puts(&out, "}");
}

int main(void)
{
  struct buf in = {0};
  char chunk[65536];
  ssize_t n;
  while ((n = read(0, chunk, sizeof chunk)) > 0)
    buf_add(&in, chunk, (size_t)n);
  struct arena a = {0};
  bool no_memory;
  const struct json *all = json_read(&a, in.data, in.len, &no_memory);
  buf_puts(&out, "[");
  for (const struct json *j = all ? all->child : NULL; j; j = j->next) {
    const struct cloche_chart *c = chart_read(&a, j, &no_memory);
    buf_puts(&out, j == all->child ? "" : ",");
    if (c)
      chart(c);
  }
  buf_puts(&out, "]\n");
  bool ok = all && !out.failed && fwrite(out.data, 1, out.len, stdout) == out.len;
  arena_free(&a);
  buf_free(&in);
  buf_free(&out);
  return !ok;
}
