/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of libcloche as the Python SDK's models. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver.h"

static void text_to(struct buf *b, const char *before, const char *text)
{
  buf_puts(b, before);
  if (text)
    buf_json(b, text);
  else
    buf_puts(b, "null");
}

void put_text(const char *before, const char *text)
{
  text_to(&d.out, before, text);
}

void put_int(const char *before, int64_t value)
{
  buf_printf(&d.out, "%s%lld", before, (long long)value);
}

void put_bool(const char *before, bool value)
{
  buf_printf(&d.out, "%s%s", before, value ? "true" : "false");
}

void put_names(const char *before, const struct cloche_pair *pairs, size_t count, bool empty_is_null)
{
  buf_puts(&d.out, before);
  if (!count && empty_is_null)
    buf_puts(&d.out, "null");
  else
    put_pairs(&d.out, pairs, count);
}

/* Python writes Z as +00:00. */
void put_time(const char *before, const char *text)
{
  size_t n = text ? strlen(text) : 0;
  buf_puts(&d.out, before);
  if (n && text[n - 1] == 'Z')
    buf_printf(&d.out, "\"%.*s+00:00\"", (int)(n - 1), text);
  else
    text_to(&d.out, "", text);
}

static void value_to(struct buf *b, const struct cloche_value *v)
{
  if (v->text && v->is_number)
    buf_puts(b, v->text);
  else
    text_to(b, "", v->text);
}

static void values_to(struct buf *b, const char *before, const struct cloche_value *v, size_t count)
{
  buf_puts(b, before);
  for (size_t i = 0; i < count; i++) {
    buf_puts(b, i ? "," : "");
    value_to(b, &v[i]);
  }
  buf_puts(b, "]");
}

static void one_value(struct buf *b, const char *before, struct cloche_value v)
{
  buf_puts(b, before);
  value_to(b, &v);
}

static void element_to(struct buf *b, const struct cloche_chart *c, const struct cloche_chart_element *e)
{
  static const char *const names[] = {[CLOCHE_CHART_LINE] = "PointData",
                                      [CLOCHE_CHART_SCATTER] = "PointData",
                                      [CLOCHE_CHART_BAR] = "BarData",
                                      [CLOCHE_CHART_PIE] = "PieData",
                                      [CLOCHE_CHART_BOX_AND_WHISKER] = "BoxAndWhiskerData"};
  text_to(b, "{\"is\":", names[c->type]);
  text_to(b, ",\"label\":", e->label);
  if (c->type == CLOCHE_CHART_LINE || c->type == CLOCHE_CHART_SCATTER) {
    buf_puts(b, ",\"points\":[");
    for (size_t i = 0; i < e->point_count; i++) {
      values_to(b, i ? ",[" : "[", (const struct cloche_value[]){e->points[i].x, e->points[i].y}, 2);
    }
    buf_puts(b, "]");
  } else if (c->type == CLOCHE_CHART_BAR) {
    text_to(b, ",\"group\":", e->group);
    one_value(b, ",\"value\":", e->value);
  } else if (c->type == CLOCHE_CHART_PIE) {
    one_value(b, ",\"angle\":", e->angle);
    one_value(b, ",\"radius\":", e->radius);
  } else {
    one_value(b, ",\"min\":", e->min);
    one_value(b, ",\"first_quartile\":", e->first_quartile);
    one_value(b, ",\"median\":", e->median);
    one_value(b, ",\"third_quartile\":", e->third_quartile);
    one_value(b, ",\"max\":", e->max);
    values_to(b, ",\"outliers\":[", e->outliers, e->outlier_count);
  }
  buf_puts(b, "}");
}

static void axis_to(struct buf *b, const char *letter, const struct cloche_axis *axis, bool points)
{
  buf_printf(b, ",\"%s_label\":", letter), text_to(b, "", axis->label);
  buf_printf(b, ",\"%s_unit\":", letter), text_to(b, "", axis->unit);
  if (!points)
    return;
  buf_printf(b, ",\"%s_scale\":", letter), text_to(b, "", axis->scale);
  buf_printf(b, ",\"%s_ticks\":[", letter), values_to(b, "", axis->ticks, axis->tick_count);
  buf_printf(b, ",\"%s_tick_labels\":[", letter);
  for (size_t i = 0; i < axis->tick_label_count; i++)
    text_to(b, i ? "," : "", axis->tick_labels[i]);
  buf_puts(b, "]");
}

static void chart_to(struct buf *b, const struct cloche_chart *c)
{
  static const char *const names[] = {"Chart",    "LineChart",          "ScatterChart", "BarChart",
                                      "PieChart", "BoxAndWhiskerChart", "SuperChart"};
  if (!c) {
    buf_puts(b, "null");
    return;
  }
  bool points = c->type == CLOCHE_CHART_LINE || c->type == CLOCHE_CHART_SCATTER;
  text_to(b, "{\"is\":", names[c->type]);
  text_to(b, ",\"type\":", c->type_name);
  text_to(b, ",\"title\":", c->title);
  buf_puts(b, ",\"elements\":[");
  for (size_t i = 0; i < c->element_count; i++)
    buf_puts(b, i ? "," : ""), element_to(b, c, &c->elements[i]);
  for (size_t i = 0; i < c->chart_count; i++)
    buf_puts(b, i ? "," : ""), chart_to(b, &c->charts[i]);
  buf_puts(b, "]");
  if (points || c->type == CLOCHE_CHART_BAR || c->type == CLOCHE_CHART_BOX_AND_WHISKER) {
    axis_to(b, "x", &c->x, points);
    axis_to(b, "y", &c->y, points);
  }
  buf_puts(b, "}");
}

static int by_name(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void formats_to(struct buf *b, const struct cloche_result *r)
{
  const struct {
    const char *name, *value;
  } all[] = {{"text", r->text},
             {"html", r->html},
             {"markdown", r->markdown},
             {"svg", r->svg},
             {"png", r->png},
             {"jpeg", r->jpeg},
             {"pdf", r->pdf},
             {"latex", r->latex},
             {"json", r->json},
             {"data", r->data},
             {"javascript", r->javascript},
             {"chart", r->chart ? "c" : NULL}};
  const char *names[64];
  size_t n = 0;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (all[i].value && *all[i].value)
      names[n++] = all[i].name;
  struct arena a = {0};
  bool no_memory;
  struct json *extra = json_read(&a, r->extra, r->extra ? strlen(r->extra) : 0, &no_memory);
  for (const struct json *m = extra ? extra->child : NULL; m && n < 64; m = m->next)
    names[n++] = m->key;
  qsort(names, n, sizeof names[0], by_name);
  buf_puts(b, ",\"formats()\":[");
  for (size_t i = 0; i < n; i++)
    text_to(b, i ? "," : "", names[i]);
  buf_puts(b, "]");
  arena_free(&a);
}

void tell_result(struct buf *b, const struct cloche_result *r)
{
  text_to(b, "{\"is\":\"Result\",\"text\":", r->text);
  text_to(b, ",\"html\":", r->html);
  text_to(b, ",\"markdown\":", r->markdown);
  text_to(b, ",\"svg\":", r->svg);
  text_to(b, ",\"png\":", r->png);
  text_to(b, ",\"jpeg\":", r->jpeg);
  text_to(b, ",\"pdf\":", r->pdf);
  text_to(b, ",\"latex\":", r->latex);
  text_to(b, ",\"javascript\":", r->javascript);
  buf_printf(b, ",\"json\":%s", r->json ? "" : "null");
  buf_puts(b, r->json ? r->json : "");
  buf_printf(b, ",\"data\":%s", r->data ? "" : "null");
  buf_puts(b, r->data ? r->data : "");
  buf_puts(b, ",\"extra\":");
  buf_puts(b, r->extra ? r->extra : "{}");
  buf_printf(b, ",\"is_main_result\":%s,\"chart\":", r->is_main ? "true" : "false");
  chart_to(b, r->chart);
  formats_to(b, r);
  buf_puts(b, "}");
}

static void texts_to(struct buf *b, const char *before, const struct cloche_text *texts, size_t count)
{
  buf_puts(b, before);
  for (size_t i = 0; i < count; i++)
    text_to(b, i ? "," : "", texts[i].data);
  buf_puts(b, "]");
}

void tell_execution(const struct cloche_execution *e)
{
  struct buf *b = &d.out;
  buf_puts(b, "{\"is\":\"Execution\",\"results\":[");
  for (size_t i = 0; i < e->result_count; i++)
    buf_puts(b, i ? "," : ""), tell_result(b, &e->results[i]);
  texts_to(b, "],\"logs\":{\"is\":\"Logs\",\"stdout\":[", e->out, e->out_count);
  texts_to(b, ",\"stderr\":[", e->err, e->err_count);
  buf_puts(b, "},\"error\":");
  if (e->error) {
    put_text("{\"is\":\"ExecutionError\",\"name\":", e->error->name);
    put_text(",\"value\":", e->error->value);
    put_text(",\"traceback\":", e->error->traceback);
    buf_puts(b, "}");
  } else {
    buf_puts(b, "null");
  }
  put_int(",\"execution_count\":", e->execution_count);
  put_text(",\"text\":", e->text);
  buf_puts(b, "}");
}

void tell_entry(const struct cloche_entry *e)
{
  const char *type = e->is_symlink                       ? "symlink"
                     : e->type == CLOCHE_ENTRY_FILE      ? "file"
                     : e->type == CLOCHE_ENTRY_DIRECTORY ? "dir"
                                                         : NULL;
  put_text("{\"is\":\"EntryInfo\",\"name\":", e->name);
  put_text(",\"type\":", type);
  put_text(",\"path\":", e->path);
  put_names(",\"metadata\":", e->metadata, e->metadata_count, true);
  put_int(",\"size\":", e->size);
  put_int(",\"mode\":", e->mode);
  put_text(",\"permissions\":", e->permissions);
  put_text(",\"owner\":", e->owner);
  put_text(",\"group\":", e->group);
  put_time(",\"modified_time\":", e->modified);
  put_text(",\"symlink_target\":", e->symlink_target);
  buf_puts(&d.out, "}");
}

/* The network's JSON by the Python SDK's names. */
static void put_network_info(const char *text)
{
  struct arena a = {0};
  bool no_memory;
  const struct json *j = json_read(&a, text, text ? strlen(text) : 0, &no_memory), *m;
  buf_puts(&d.out, ",\"network\":");
  if (j) {
    buf_puts(&d.out, "{");
    const char *between = "";
    static const char *const names[][2] = {
        {"allowOut", "allow_out"}, {"denyOut", "deny_out"}, {"allowPublicTraffic", "allow_public_traffic"}};
    for (int i = 0; i < 3; i++)
      if ((m = json_get(j, names[i][0]))) {
        buf_printf(&d.out, "%s\"%s\":%.*s", between, names[i][1], (int)m->raw_len, m->raw);
        between = ",";
      }
    buf_puts(&d.out, "}");
  } else {
    buf_puts(&d.out, "null");
  }
  arena_free(&a);
}

void tell_box_info(const struct cloche_box_info *info)
{
  put_text("{\"is\":\"SandboxInfo\",\"sandbox_id\":", info->id);
  put_text(",\"sandbox_domain\":", info->domain);
  put_text(",\"template_id\":", info->template_id);
  put_text(",\"name\":", info->alias);
  put_names(",\"metadata\":", info->metadata, info->metadata_count, false);
  put_time(",\"started_at\":", info->started_at);
  put_time(",\"end_at\":", info->end_at);
  put_text(",\"state\":", info->state);
  put_int(",\"cpu_count\":", info->cpu_count);
  put_int(",\"memory_mb\":", info->memory_mb);
  put_text(",\"envd_version\":", info->envd_version);
  buf_puts(&d.out, ",\"allow_internet_access\":null,\"envd_unresponsive_at_pause\":null");
  put_network_info(info->network_json);
  if (info->on_timeout) {
    put_text(",\"lifecycle\":{\"on_timeout\":", info->on_timeout);
    put_bool(",\"auto_resume\":", info->auto_resume);
    buf_puts(&d.out, "}");
  } else {
    buf_puts(&d.out, ",\"lifecycle\":null");
  }
  buf_puts(&d.out, ",\"volume_mounts\":[");
  for (size_t i = 0; i < info->mount_count; i++) {
    put_text(i ? ",{\"name\":" : "{\"name\":", info->mounts[i].name);
    put_text(",\"path\":", info->mounts[i].path);
    buf_puts(&d.out, "}");
  }
  buf_puts(&d.out, "]}");
}

static void command_members(const struct cloche_command_result *r)
{
  put_text("\"stdout\":", r->out.data);
  put_text(",\"stderr\":", r->err.data);
  put_int(",\"exit_code\":", r->exit_code);
  put_text(",\"error\":", r->error);
}

void tell_exit(const struct cloche_command_result *r)
{
  buf_puts(&d.out, "{\"is\":\"CommandExitException\",\"bases\":[\"CommandExitException\",\"SandboxException\"],"
                   "\"message\":\"\",\"fields\":{");
  command_members(r);
  buf_puts(&d.out, "}}");
}

enum cloche_code tell_command(const struct cloche_command_result *r)
{
  if (r->exit_code != 0) {
    tell_exit(r);
    return TOLD_ERROR;
  }
  buf_puts(&d.out, "{\"is\":\"CommandResult\",");
  command_members(r);
  buf_puts(&d.out, "}");
  return CLOCHE_OK;
}

void tell_content(const struct cloche_text *text)
{
  if (!arg("format")) {
    put_text("", text->data);
    return;
  }
  buf_puts(&d.out, "{\"bytes\":\"");
  buf_base64(&d.out, text->data, text->len);
  buf_puts(&d.out, "\"}");
}

static const char *kept_class(enum cloche_code code, bool *has_status)
{
  bool on_volume = step_kept() && step_kept()->volume;
  *has_status = strncmp(d.area, "Template.", 9) == 0;
  if (on_volume)
    return code == CLOCHE_ENOTFOUND ? "VolumePathNotFoundException" : "VolumeException";
  if (strncmp(d.area, "Volume.", 7) == 0)
    return code == CLOCHE_ENOTFOUND ? "VolumeNotFoundException" : "VolumeException";
  if (strncmp(d.area, "Secret.", 7) == 0)
    return code == CLOCHE_ENOTFOUND ? "SecretNotFoundException" : "SecretException";
  if (*has_status)
    return "TemplateException";
  return code == CLOCHE_EBUILD ? "BuildException" : NULL;
}

/* git's own end is in the message. */
static bool git_raised(void)
{
  static const char begin[] = "git exited with ";
  const char *message = d.error.message ? d.error.message : "";
  if (strncmp(d.area, "git.", 4) != 0 || strncmp(message, begin, sizeof begin - 1) != 0)
    return false;
  char *text;
  long status = strtol(message + sizeof begin - 1, &text, 10);
  if (strstr(text, "upstream") || strstr(text, "push destination")) {
    put_text("{\"is\":\"GitUpstreamException\",\"bases\":[\"GitUpstreamException\"],\"fields\":{\"status_code\":null},"
             "\"message\":",
             text + 2);
    buf_puts(&d.out, "}");
    return true;
  }
  put_text(
      "{\"is\":\"CommandExitException\",\"bases\":[\"CommandExitException\"],\"fields\":{\"stdout\":\"\",\"stderr\":",
      text + 2);
  put_int(",\"exit_code\":", status);
  buf_printf(&d.out, ",\"error\":\"exit status %ld\"},\"message\":\"\"}", status);
  return true;
}

/* The class that the Python SDK raises for this code in this area. */
static const char *class_of(enum cloche_code code, bool *has_status)
{
  bool on_api = d.error.http_status && (strncmp(d.area, "Sandbox.", 8) == 0 || strncmp(d.area, "Template.", 9) == 0);
  bool about_box = strcmp(d.area, "get_info") == 0 || strcmp(d.area, "set_timeout") == 0 ||
                   strcmp(d.area, "connect") == 0 || strcmp(d.area, "Sandbox.connect") == 0 ||
                   strcmp(d.area, "Sandbox.get_info") == 0;
  switch (code) {
  case CLOCHE_EAUTH:
    return "AuthenticationException";
  case CLOCHE_ETIMEOUT:
    return "TimeoutException";
  case CLOCHE_EGONE:
    return about_box ? "SandboxNotFoundException" : "SandboxNotRunningException";
  case CLOCHE_ENOTFOUND:
    if (strncmp(d.area, "files.", 6) == 0 || strcmp(d.area, "watch") == 0)
      return "FileNotFoundException";
    if (about_box)
      return "SandboxNotFoundException";
    *has_status = on_api;
    return on_api ? "SandboxException" : "NotFoundException";
  case CLOCHE_EINVAL:
    *has_status = on_api;
    return on_api ? "SandboxException" : "InvalidArgumentException";
  default:
    *has_status = on_api;
    return "SandboxException";
  }
}

void tell_raised(enum cloche_code code)
{
  bool has_status = false;
  if (git_raised())
    return;
  const char *name = kept_class(code, &has_status);
  if (!name)
    name = class_of(code, &has_status);
  put_text("{\"is\":", name);
  put_text(",\"bases\":[", name);
  put_text("],\"message\":", d.error.message ? d.error.message : cloche_code_name(code));
  if (has_status)
    put_int(",\"fields\":{\"status_code\":", d.error.http_status);
  else
    buf_puts(&d.out, ",\"fields\":{\"status_code\":null");
  buf_puts(&d.out, "}}");
}
