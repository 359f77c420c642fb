/* SPDX-License-Identifier: Apache-2.0 */
/* Charts as structs: the types that the contract has; others keep their type's name and their JSON. */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static struct cloche_value value_of(const struct json *j)
{
  struct cloche_value v = {0};
  if (j && (j->type == JSON_NUMBER || j->type == JSON_STRING)) {
    v.text = j->text;
    v.is_number = j->type == JSON_NUMBER;
    v.number = v.is_number ? strtod(j->text, NULL) : 0;
  }
  return v;
}

static size_t length_of(const struct json *j)
{
  return j && j->type == JSON_ARRAY ? j->len : 0;
}

static bool read_values(struct arena *a, const struct json *j, const struct cloche_value **out, size_t *count)
{
  size_t n = length_of(j);
  struct cloche_value *values = arena_array(a, n, sizeof *values);
  if (!values)
    return false;
  for (const struct json *e = n ? j->child : NULL; e; e = e->next)
    values[(*count)++] = value_of(e);
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
    points[out->point_count++] = (struct cloche_point){value_of(x), value_of(x ? x->next : NULL)};
  }
  out->points = points;
  return true;
}

static bool read_element(struct arena *a, const struct json *j, struct cloche_chart_element *e)
{
  e->label = json_text(j, "label");
  e->group = json_text(j, "group");
  e->value = value_of(json_get(j, "value"));
  e->angle = value_of(json_get(j, "angle"));
  e->radius = value_of(json_get(j, "radius"));
  e->min = value_of(json_get(j, "min"));
  e->first_quartile = value_of(json_get(j, "first_quartile"));
  e->median = value_of(json_get(j, "median"));
  e->third_quartile = value_of(json_get(j, "third_quartile"));
  e->max = value_of(json_get(j, "max"));
  return read_points(a, json_get(j, "points"), e) &&
         read_values(a, json_get(j, "outliers"), &e->outliers, &e->outlier_count);
}

static bool read_axis(struct arena *a, const struct json *j, const char *const keys[5], struct cloche_axis *axis)
{
  axis->label = json_text(j, keys[0]);
  axis->unit = json_text(j, keys[1]);
  axis->scale = json_text(j, keys[2]);
  const struct json *labels = json_get(j, keys[4]);
  size_t n = length_of(labels);
  const char **texts = arena_array(a, n, sizeof *texts);
  if (!texts)
    return false;
  for (const struct json *e = n ? labels->child : NULL; e; e = e->next)
    texts[axis->tick_label_count++] = e->type == JSON_STRING ? e->text : "";
  axis->tick_labels = texts;
  return read_values(a, json_get(j, keys[3]), &axis->ticks, &axis->tick_count);
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
  static const char *const x[] = {"x_label", "x_unit", "x_scale", "x_ticks", "x_tick_labels"};
  static const char *const y[] = {"y_label", "y_unit", "y_scale", "y_ticks", "y_tick_labels"};
  const struct json *elements = json_get(j, "elements");
  const char *name = json_text(j, "type");
  c->type_name = name ? name : "unknown";
  c->type = type_of(c->type_name);
  c->title = json_text(j, "title");
  c->raw = model_raw(a, j);
  if (!c->raw || !read_axis(a, j, x, &c->x) || !read_axis(a, j, y, &c->y))
    return false;
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
