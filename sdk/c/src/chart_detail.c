/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a chart is beyond the contract's types, as structs: the key `cloche` of sdk/charts/schema/chart.json. Every list
 * is read by its form, not by its chart's type, so that a server that tells more is read as far as it is known.
 */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static bool is_list(const struct json *j)
{
  return j && j->type == JSON_ARRAY;
}

static bool values_of(struct arena *a, const struct json *j, struct cloche_values *out)
{
  return !is_list(j) || chart_values(a, j, &out->items, &out->count);
}

static bool rows_of(struct arena *a, const struct json *j, struct cloche_rows *out)
{
  if (!is_list(j))
    return true;
  struct cloche_values *rows = arena_array(a, j->len, sizeof *rows);
  if (!rows)
    return false;
  for (const struct json *e = j->child; e; e = e->next)
    if (!values_of(a, e, &rows[out->count++]))
      return false;
  out->items = rows;
  return true;
}

static bool paths_of(struct arena *a, const struct json *j, struct cloche_paths *out)
{
  if (!is_list(j))
    return true;
  struct cloche_rows *paths = arena_array(a, j->len, sizeof *paths);
  if (!paths)
    return false;
  for (const struct json *e = j->child; e; e = e->next)
    if (!rows_of(a, e, &paths[out->count++]))
      return false;
  out->items = paths;
  return true;
}

static bool has_rows(const struct json *j)
{
  for (const struct json *e = is_list(j) ? j->child : NULL; e; e = e->next)
    if (is_list(e))
      return true;
  return false;
}

/* A heatmap has a number of this name, which is no list. */
static bool columns_of(struct arena *a, const struct json *j, struct cloche_detail_element *out)
{
  if (!j || j->type != JSON_OBJECT)
    return true;
  struct cloche_column *columns = arena_array(a, j->len, sizeof *columns);
  if (!columns)
    return false;
  for (const struct json *e = j->child; e; e = e->next) {
    struct cloche_column *c = &columns[out->column_count++];
    c->name = e->key;
    if (has_rows(e) ? !rows_of(a, e, &c->rows) : !values_of(a, e, &c->values))
      return false;
  }
  out->columns = columns;
  return true;
}

static bool encoding_of(struct arena *a, const struct json *j, struct cloche_detail_element *out)
{
  if (!j || j->type != JSON_OBJECT)
    return true;
  struct cloche_channel *channels = arena_array(a, j->len, sizeof *channels);
  if (!channels)
    return false;
  for (const struct json *e = j->child; e; e = e->next) {
    const struct json *bin = json_get(e, "bin");
    channels[out->encoding_count++] = (struct cloche_channel){
        .name = e->key,
        .field = json_text(e, "field"),
        .type = json_text(e, "type"),
        .title = json_text(e, "title"),
        .aggregate = json_text(e, "aggregate"),
        .bin = bin && bin->type == JSON_TRUE,
    };
  }
  out->encoding = channels;
  return true;
}

static void single_values(const struct json *j, struct cloche_detail_element *e)
{
  e->label = json_text(j, "label");
  e->level = chart_value(json_get(j, "level"));
  e->upper = chart_value(json_get(j, "upper"));
  e->row_total = json_int(json_get(j, "rows"), 0);
  e->column_total = json_int(json_get(j, "columns"), 0);
  e->channels = json_int(json_get(j, "channels"), 0);
  e->value_min = chart_value(json_get(j, "value_min"));
  e->value_max = chart_value(json_get(j, "value_max"));
  e->colormap = json_text(j, "colormap");
  e->trace = json_text(j, "trace");
  e->mode = json_text(j, "mode");
  e->orientation = json_text(j, "orientation");
  e->mark = json_text(j, "mark");
}

static bool element_of(struct arena *a, const struct json *j, struct cloche_detail_element *e)
{
  single_values(j, e);
  return rows_of(a, json_get(j, "bins"), &e->bins) && rows_of(a, json_get(j, "points"), &e->points) &&
         rows_of(a, json_get(j, "x_errors"), &e->x_errors) && rows_of(a, json_get(j, "y_errors"), &e->y_errors) &&
         paths_of(a, json_get(j, "paths"), &e->paths) && values_of(a, json_get(j, "widths"), &e->widths) &&
         values_of(a, json_get(j, "bases"), &e->bases) && values_of(a, json_get(j, "x"), &e->x) &&
         values_of(a, json_get(j, "y"), &e->y) && rows_of(a, json_get(j, "values"), &e->values) &&
         encoding_of(a, json_get(j, "encoding"), e) && columns_of(a, json_get(j, "columns"), e);
}

static bool elements_of(struct arena *a, const struct json *j, const struct cloche_detail_element **out, size_t *count)
{
  if (!is_list(j))
    return true;
  struct cloche_detail_element *elements = arena_array(a, j->len, sizeof *elements);
  if (!elements)
    return false;
  for (const struct json *e = j->child; e; e = e->next)
    if (!element_of(a, e, &elements[(*count)++]))
      return false;
  *out = elements;
  return true;
}

static bool sampled_of(struct arena *a, const struct json *j, struct cloche_chart_detail *d)
{
  if (!is_list(j))
    return true;
  struct cloche_sampled *sampled = arena_array(a, j->len, sizeof *sampled);
  if (!sampled)
    return false;
  for (const struct json *e = j->child; e; e = e->next)
    sampled[d->sampled_count++] = (struct cloche_sampled){
        .element = json_int(json_get(e, "element"), 0),
        .what = json_text(e, "what"),
        .of = json_int(json_get(e, "of"), 0),
        .kept = json_int(json_get(e, "kept"), 0),
        .step = json_int(json_get(e, "step"), 0),
    };
  d->sampled = sampled;
  return true;
}

static enum cloche_detail_type type_of(const char *name)
{
  static const char *const names[] = {"",      "histogram",  "area",    "heatmap", "error_bar", "contour",
                                      "polar", "scatter_3d", "line_3d", "plotly",  "altair"};
  for (size_t i = 1; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0)
      return (enum cloche_detail_type)i;
  return CLOCHE_DETAIL_UNKNOWN;
}

static bool is_true(const struct json *j, const char *key)
{
  const struct json *value = json_get(j, key);
  return value && value->type == JSON_TRUE;
}

static bool fill(struct arena *a, const struct json *j, struct cloche_chart_detail *d)
{
  d->type_name = json_text(j, "type");
  d->type = type_of(d->type_name);
  d->orientation = json_text(j, "orientation");
  d->stacked = is_true(j, "stacked");
  d->filled = is_true(j, "filled");
  d->of = json_text(j, "of");
  d->theta_offset = chart_value(json_get(j, "theta_offset")).number;
  d->theta_direction = chart_value(json_get(j, "theta_direction")).number;
  return chart_axis(a, j, 'x', &d->x) && chart_axis(a, j, 'y', &d->y) && chart_axis(a, j, 'z', &d->z) &&
         values_of(a, json_get(j, "levels"), &d->levels) &&
         elements_of(a, json_get(j, "elements"), &d->elements, &d->element_count) &&
         elements_of(a, json_get(j, "lines"), &d->lines, &d->line_count) && sampled_of(a, json_get(j, "sampled"), d);
}

bool chart_detail_read(struct arena *a, const struct json *j, const struct cloche_chart_detail **out)
{
  if (!json_text(j, "type"))
    return true;
  struct cloche_chart_detail *detail = arena_alloc(a, sizeof *detail);
  if (!detail || !fill(a, j, detail))
    return false;
  *out = detail;
  return true;
}
