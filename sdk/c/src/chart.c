/* SPDX-License-Identifier: Apache-2.0 */
/* Charts as structs: the types that the contract has. What a chart is beyond them is read by chart_detail.c; types that
 * neither knows keep their name and their JSON. */
#include <string.h>
#include "internal.h"

struct cloche_value chart_value(const struct json *j)
{
  struct cloche_value v = {0};
  if (j && (j->type == JSON_NUMBER || j->type == JSON_STRING)) {
    v.text = j->text;
    v.is_number = j->type == JSON_NUMBER;
    v.number = json_double(j);
  }
  return v;
}

static size_t length_of(const struct json *j)
{
  return j && j->type == JSON_ARRAY ? j->len : 0;
}

bool chart_values(struct arena *a, const struct json *j, const struct cloche_value **out, size_t *count)
{
  size_t n = length_of(j);
  struct cloche_value *values = arena_array(a, n, sizeof *values);
  if (!values)
    return false;
  for (const struct json *e = n ? j->child : NULL; e; e = e->next)
    values[(*count)++] = chart_value(e);
  *out = values;
  return true;
}

static bool read_points(struct arena *a, const struct json *j, struct cloche_chart_element *out)
{
  size_t n = length_of(j);
  struct cloche_point *points = arena_array(a, n, sizeof *points);
  if (!points)
    return false;
  for (const struct json *e = n ? j->child : NULL; e; e = e->next) {
    const struct json *x = e->type == JSON_ARRAY ? e->child : NULL;
    points[out->point_count++] = (struct cloche_point){chart_value(x), chart_value(x ? x->next : NULL)};
  }
  out->points = points;
  return true;
}

static bool read_element(struct arena *a, const struct json *j, struct cloche_chart_element *e)
{
  e->label = json_text(j, "label");
  e->group = json_text(j, "group");
  e->value = chart_value(json_get(j, "value"));
  e->angle = chart_value(json_get(j, "angle"));
  e->radius = chart_value(json_get(j, "radius"));
  e->min = chart_value(json_get(j, "min"));
  e->first_quartile = chart_value(json_get(j, "first_quartile"));
  e->median = chart_value(json_get(j, "median"));
  e->third_quartile = chart_value(json_get(j, "third_quartile"));
  e->max = chart_value(json_get(j, "max"));
  return read_points(a, json_get(j, "points"), e) &&
         chart_values(a, json_get(j, "outliers"), &e->outliers, &e->outlier_count);
}

bool chart_axis(struct arena *a, const struct json *j, char letter, struct cloche_axis *axis)
{
  char label[] = "x_label", unit[] = "x_unit", scale[] = "x_scale", ticks[] = "x_ticks", texts[] = "x_tick_labels";
  label[0] = unit[0] = scale[0] = ticks[0] = texts[0] = letter;
  axis->label = json_text(j, label);
  axis->unit = json_text(j, unit);
  axis->scale = json_text(j, scale);
  const struct json *labels = json_get(j, texts);
  size_t n = length_of(labels);
  const char **all = arena_array(a, n, sizeof *all);
  if (!all)
    return false;
  for (const struct json *e = n ? labels->child : NULL; e; e = e->next)
    all[axis->tick_label_count++] = e->type == JSON_STRING ? e->text : "";
  axis->tick_labels = all;
  return chart_values(a, json_get(j, ticks), &axis->ticks, &axis->tick_count);
}

static enum cloche_chart_type type_of(const char *name)
{
  static const char *const names[] = {"unknown", "line", "scatter", "bar", "pie", "box_and_whisker", "superchart"};
  for (int i = 0; i < 7; i++)
    if (strcmp(name, names[i]) == 0)
      return (enum cloche_chart_type)i;
  return CLOCHE_CHART_UNKNOWN;
}

static bool read_chart(struct arena *a, const struct json *j, struct cloche_chart *c, bool inner)
{
  const struct json *elements = json_get(j, "elements");
  const char *name = json_text(j, "type");
  c->type_name = name ? name : "unknown";
  c->type = type_of(c->type_name);
  c->title = json_text(j, "title");
  c->raw = model_raw(a, j);
  if (!c->raw || !chart_axis(a, j, 'x', &c->x) || !chart_axis(a, j, 'y', &c->y) ||
      !chart_detail_read(a, json_get(j, "cloche"), &c->detail))
    return false;
  c->kind = c->detail ? c->detail->type_name : c->type_name;
  if (c->type == CLOCHE_CHART_UNKNOWN || (c->type == CLOCHE_CHART_SUPERCHART && inner))
    return true;
  bool super = c->type == CLOCHE_CHART_SUPERCHART;
  size_t n = length_of(elements), i = 0;
  struct cloche_chart *charts = super ? arena_array(a, n, sizeof *charts) : NULL;
  struct cloche_chart_element *all = super ? NULL : arena_array(a, n, sizeof *all);
  if (super ? !charts : !all)
    return false;
  for (const struct json *e = n ? elements->child : NULL; e; e = e->next, i++)
    if (super ? !read_chart(a, e, &charts[i], true) : !read_element(a, e, &all[i]))
      return false;
  c->charts = charts;
  c->elements = all;
  *(super ? &c->chart_count : &c->element_count) = n;
  return true;
}

const struct cloche_chart *chart_read(struct arena *a, const struct json *j, bool *no_memory)
{
  struct cloche_chart *chart = arena_alloc(a, sizeof *chart);
  *no_memory = !chart || !read_chart(a, j, chart, false);
  return *no_memory ? NULL : chart;
}
