/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates. A build is one operation of several requests: ask for a build, bring what COPY steps need, start it, and
 * read its log until the end. Everything that is sent is put together before the first of them, so that the recipe may
 * be changed or freed as soon as the call has returned.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"

#define POLL_MS 200

#define AT(type, key, kind, member)                                                                                    \
  {                                                                                                                    \
    key, kind, offsetof(struct type, member), 0, NULL                                                                  \
  }

static const struct field entry_fields[] = {AT(cloche_build_entry, "timestamp", F_TEXT, timestamp),
                                            AT(cloche_build_entry, "level", F_TEXT, level),
                                            AT(cloche_build_entry, "message", F_TEXT, message),
                                            AT(cloche_build_entry, "step", F_TEXT, step),
                                            {0}};
static const struct model build_entry_model = {sizeof(struct cloche_build_entry), entry_fields, NULL};
static const struct field info_fields[] = {AT(cloche_build_info, "templateID", F_TEXT, template_id),
                                           AT(cloche_build_info, "buildID", F_TEXT, build_id),
                                           AT(cloche_build_info, "status", F_TEXT, status),
                                           AT(cloche_build_info, "reason.message", F_TEXT, reason),
                                           AT(cloche_build_info, "reason.step", F_TEXT, reason_step),
                                           {"logEntries", F_LIST, offsetof(struct cloche_build_info, logs),
                                            offsetof(struct cloche_build_info, log_count), &build_entry_model},
                                           {0}};
static const struct model build_info_model = {sizeof(struct cloche_build_info), info_fields, NULL};
static const struct field template_fields[] = {AT(cloche_template_info, "templateID", F_TEXT, id),
                                               AT(cloche_template_info, "buildID", F_TEXT, build_id),
                                               AT(cloche_template_info, "buildStatus", F_TEXT, build_status),
                                               AT(cloche_template_info, "createdAt", F_TEXT, created_at),
                                               AT(cloche_template_info, "updatedAt", F_TEXT, updated_at),
                                               AT(cloche_template_info, "aliases", F_TEXTS, aliases),
                                               AT(cloche_template_info, "names", F_TEXTS, names),
                                               AT(cloche_template_info, "cpuCount", F_INT, cpu_count),
                                               AT(cloche_template_info, "memoryMB", F_INT, memory_mb),
                                               AT(cloche_template_info, "diskSizeMB", F_INT, disk_mb),
                                               AT(cloche_template_info, "buildCount", F_INT, build_count),
                                               AT(cloche_template_info, "spawnCount", F_INT, spawn_count),
                                               AT(cloche_template_info, "public", F_BOOL, is_public),
                                               AT(cloche_template_info, "", F_SELF, raw),
                                               {0}};
static const struct model template_model = {sizeof(struct cloche_template_info), template_fields, NULL};
static const struct field tag_fields[] = {AT(cloche_tag, "tag", F_TEXT, tag),
                                          AT(cloche_tag, "buildID", F_TEXT, build_id),
                                          AT(cloche_tag, "createdAt", F_TEXT, created_at),
                                          {0}};
static const struct model tag_model = {sizeof(struct cloche_tag), tag_fields, NULL};

static struct cloche_op *begin(struct cloche *client, const char *method, const char *path, const char *name,
                               const char *suffix, void *out, const struct cloche_call *call,
                               struct cloche_error *error)
{
  struct cloche_op *op = op_begin(client, NULL, call, OP_CONTROL, error);
  if (!op)
    return NULL;
  req_api(op, method, path);
  if (name)
    req_segment(op, name);
  req_path(op, suffix);
  op->out = out;
  return op;
}

enum cloche_code cloche_templates(struct cloche *client, struct cloche_template_list **list,
                                  const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "GET", "/templates", NULL, "", list, call, error);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply_list;
  op->model = &template_model;
  return op_go(op, error);
}

/* 403 says that the name is another team's: it exists. */
static enum cloche_code reply_alias(struct cloche_op *op)
{
  if (!reply_good(op) && op->status != 403 && op->status != 404)
    return reply_failed(op);
  *(bool *)op->out = op->status != 404;
  return CLOCHE_OK;
}

enum cloche_code cloche_template_exists(struct cloche *client, const char *name, bool *exists,
                                        const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "GET", "/templates/aliases", name ? name : "", "", exists, call, error);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply_alias;
  return op_go(op, error);
}

enum cloche_code cloche_template_delete(struct cloche *client, const char *name, bool *existed,
                                        const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "DELETE", "/templates", name ? name : "", "", existed, call, error);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply_existed;
  return op_go(op, error);
}

static enum cloche_code change_tags(struct cloche *client, const char *method, const char *key, const char *name,
                                    const char *const *tags, const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin(client, method, "/templates/tags", NULL, "", NULL, call, error);
  if (!op)
    return op_not_begun(call);
  req_json(op);
  buf_printf(&op->body, "{\"%s\":", key);
  buf_json(&op->body, name);
  buf_puts(&op->body, ",\"tags\":");
  put_texts(&op->body, tags);
  buf_puts(&op->body, "}");
  op->on_reply = reply_ok;
  return op_go(op, error);
}

enum cloche_code cloche_tags_assign(struct cloche *client, const char *target, const char *const *tags,
                                    const struct cloche_call *call, struct cloche_error *error)
{
  return change_tags(client, "POST", "target", target, tags, call, error);
}

enum cloche_code cloche_tags_remove(struct cloche *client, const char *name, const char *const *tags,
                                    const struct cloche_call *call, struct cloche_error *error)
{
  return change_tags(client, "DELETE", "name", name, tags, call, error);
}

enum cloche_code cloche_tags(struct cloche *client, const char *name, struct cloche_tag_list **list,
                             const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "GET", "/templates", name ? name : "", "/tags", list, call, error);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply_list;
  op->model = &tag_model;
  return op_go(op, error);
}

enum cloche_code cloche_build_status(struct cloche *client, const char *template_id, const char *build_id,
                                     int log_offset, struct cloche_build_info **info, const struct cloche_call *call,
                                     struct cloche_error *error)
{
  struct cloche_op *op =
      begin(client, "GET", "/templates", template_id ? template_id : "", "/builds", info, call, error);
  if (!op)
    return op_not_begun(call);
  req_segment(op, build_id);
  req_path(op, "/status");
  req_query_int(op, "logsOffset", log_offset);
  op->on_reply = reply_model;
  op->model = &build_info_model;
  return op_go(op, error);
}

/* ---- building ---- */

struct archive {
  struct archive *next;
  char hash[65];
  int fd;
};

struct building {
  struct buf recipe; /* the body that starts the build */
  struct archive *archives;
  char template_id[128], build_id[64];
  int log_offset;
  struct cloche_build o;
};

static void building_free(void *state)
{
  struct building *b = state;
  buf_free(&b->recipe);
  while (b->archives) {
    struct archive *next = b->archives->next;
    if (b->archives->fd >= 0)
      close(b->archives->fd);
    free(b->archives);
    b->archives = next;
  }
}

static void put_step(struct buf *b, const struct step *s, bool force)
{
  buf_puts(b, "{\"type\":");
  buf_json(b, s->type);
  buf_puts(b, ",\"args\":[");
  for (int i = 0; i < s->arg_count; i++) {
    buf_puts(b, i ? "," : "");
    buf_json(b, s->args[i]);
  }
  buf_printf(b, "],\"force\":%s", s->force || force ? "true" : "false");
  if (s->hash[0])
    buf_printf(b, ",\"filesHash\":\"%s\"", s->hash);
  buf_puts(b, "}");
}

void put_recipe(struct buf *b, const struct cloche_recipe *r, bool force)
{
  buf_puts(b, r->template_name ? "{\"fromTemplate\":" : "{\"fromImage\":");
  buf_json(b, r->template_name ? r->template_name : r->image ? r->image : "e2bdev/base");
  if (r->registry_user) {
    buf_puts(b, ",\"fromImageRegistry\":{\"type\":\"registry\",\"username\":");
    buf_json(b, r->registry_user);
    buf_puts(b, ",\"password\":");
    buf_json(b, r->registry_password ? r->registry_password : "");
    buf_puts(b, "}");
  }
  buf_printf(b, ",\"force\":%s,\"steps\":[", force ? "true" : "false");
  for (const struct step *s = r->steps; s; s = s->next) {
    put_step(b, s, force);
    buf_puts(b, s->next ? "," : "");
  }
  buf_puts(b, "]");
  if (r->start)
    buf_puts(b, ",\"startCmd\":"), buf_json(b, r->start);
  if (r->ready)
    buf_puts(b, ",\"readyCmd\":"), buf_json(b, r->ready);
  buf_puts(b, "}");
}

/* Files are read now; what they were is what is built. */
static enum cloche_code pack_steps(struct building *b, struct cloche_recipe *r, struct cloche_error *error)
{
  struct archive **tail = &b->archives;
  for (struct step *s = r->steps; s; s = s->next) {
    if (strcmp(s->type, "COPY") != 0)
      continue;
    enum cloche_code code = copy_archive(s, r->context ? r->context : ".", error);
    if (code != CLOCHE_OK)
      return code;
    struct archive *a = calloc(1, sizeof *a);
    if (!a)
      return op_no_memory(error);
    memcpy(a->hash, s->hash, sizeof a->hash);
    a->fd = s->archive;
    s->archive = -1;
    *tail = a;
    tail = &a->next;
  }
  return CLOCHE_OK;
}

static enum cloche_code sent(struct cloche_op *op)
{
  return req_send(op) ? OP_AGAIN : op->failed;
}

static enum cloche_code on_status(struct cloche_op *op);

/* The next look at the log, at once or after a while. */
static enum cloche_code ask_status(struct cloche_op *op, bool soon)
{
  struct building *b = op->state;
  req_reset(op);
  req_api(op, "GET", "/templates");
  req_segment(op, b->template_id);
  req_path(op, "/builds");
  req_segment(op, b->build_id);
  req_path(op, "/status");
  req_query_int(op, "logsOffset", b->log_offset);
  op->on_reply = on_status;
  if (op->failed != CLOCHE_OK || op->url.failed)
    return CLOCHE_ENOMEM;
  if (soon)
    return sent(op);
  op->retry_at = now_ms() + POLL_MS;
  return OP_AGAIN;
}

static enum cloche_code tell_logs(struct cloche_op *op, const struct cloche_build_info *info)
{
  struct building *b = op->state;
  for (size_t i = 0; i < info->log_count; i++)
    if (b->o.on_log && b->o.on_log(&info->logs[i], b->o.user) != 0)
      return op_fail(op, CLOCHE_ECANCELED, "canceled by a callback");
  b->log_offset += (int)info->log_count;
  return CLOCHE_OK;
}

static enum cloche_code on_status(struct cloche_op *op)
{
  if (!reply_good(op))
    return reply_failed(op);
  struct cloche_build_info *info = result_new(sizeof *info);
  if (!info)
    return CLOCHE_ENOMEM;
  enum cloche_code code = CLOCHE_OK;
  struct json *j = reply_json(op, result_arena(info), &code);
  if (j && !model_fill(result_arena(info), &build_info_model, j, info))
    code = CLOCHE_ENOMEM;
  if (code == CLOCHE_OK)
    code = tell_logs(op, info);
  const char *status = info->status ? info->status : "";
  bool over = strcmp(status, "ready") == 0 || strcmp(status, "error") == 0;
  bool more = info->log_count > 0;
  if (code == CLOCHE_OK && over && !more) {
    if (strcmp(status, "ready") == 0)
      return answer(op, info);
    code = op_fail(op, CLOCHE_EBUILD, "step %s: %s", info->reason_step ? info->reason_step : "?",
                   info->reason ? info->reason : "the build failed");
  }
  cloche_free(info);
  return code == CLOCHE_OK ? ask_status(op, more) : code;
}

static enum cloche_code on_begun(struct cloche_op *op)
{
  struct building *b = op->state;
  if (!reply_good(op))
    return reply_failed(op);
  if (!b->o.background)
    return ask_status(op, true);
  struct cloche_build_info *info = result_new(sizeof *info);
  struct arena *a = info ? result_arena(info) : NULL;
  if (!info || !(info->template_id = arena_text(a, b->template_id, strlen(b->template_id))) ||
      !(info->build_id = arena_text(a, b->build_id, strlen(b->build_id)))) {
    cloche_free(info);
    return CLOCHE_ENOMEM;
  }
  info->status = "building";
  return answer(op, info);
}

static enum cloche_code begin_build(struct cloche_op *op)
{
  struct building *b = op->state;
  req_reset(op);
  req_api(op, "POST", "/v2/templates");
  req_segment(op, b->template_id);
  req_path(op, "/builds");
  req_segment(op, b->build_id);
  req_json(op);
  op->body = b->recipe;
  b->recipe = (struct buf){0};
  op->on_reply = on_begun;
  return sent(op);
}

static enum cloche_code next_archive(struct cloche_op *op);

static enum cloche_code archive_done(struct cloche_op *op)
{
  struct building *b = op->state;
  struct archive *a = b->archives;
  b->archives = a->next;
  close(a->fd);
  free(a);
  return next_archive(op);
}

static enum cloche_code on_uploaded(struct cloche_op *op)
{
  return reply_good(op) ? archive_done(op) : reply_failed(op);
}

static void put_headers(struct cloche_op *op, const struct json *headers)
{
  for (const struct json *h = headers && headers->type == JSON_OBJECT ? headers->child : NULL; h; h = h->next)
    if (h->type == JSON_STRING && strcasecmp(h->key, "content-length") != 0)
      req_header(op, h->key, h->text);
}

static enum cloche_code on_link(struct cloche_op *op)
{
  const struct building *b = op->state;
  if (!reply_good(op))
    return reply_failed(op);
  struct arena a = {0};
  enum cloche_code code = CLOCHE_OK;
  struct buf kept = op->in; /* the URL stands in it */
  op->in = (struct buf){.max = kept.max};
  bool no_memory = false;
  struct json *j = json_read(&a, kept.data, kept.len, &no_memory);
  const struct json *present = json_get(j, "present");
  const char *url = json_text(j, "url");
  if (!j) {
    code = no_memory ? CLOCHE_ENOMEM : op_fail(op, CLOCHE_EPROTO, "the upload link is no JSON");
  } else if (present && present->type == JSON_TRUE) {
    code = archive_done(op);
  } else if (!url) {
    code = op_fail(op, CLOCHE_EPROTO, "the upload link has no address");
  } else {
    req_reset(op);
    req_url(op, "PUT", url);
    put_headers(op, json_get(j, "headers"));
    op->source_fd = b->archives->fd;
    op->on_reply = on_uploaded;
    code = sent(op);
  }
  arena_free(&a);
  buf_free(&kept);
  return code;
}

static enum cloche_code next_archive(struct cloche_op *op)
{
  struct building *b = op->state;
  if (!b->archives)
    return begin_build(op);
  req_reset(op);
  req_api(op, "GET", "/templates");
  req_segment(op, b->template_id);
  req_path(op, "/files");
  req_segment(op, b->archives->hash);
  op->on_reply = on_link;
  return sent(op);
}

static enum cloche_code on_asked(struct cloche_op *op)
{
  struct building *b = op->state;
  if (!reply_good(op))
    return reply_failed(op);
  struct arena a = {0};
  enum cloche_code code = CLOCHE_OK;
  struct json *j = reply_json(op, &a, &code);
  const char *template_id = json_text(j, "templateID"), *build_id = json_text(j, "buildID");
  if (j && (!template_id || !build_id))
    code = op_fail(op, CLOCHE_EPROTO, "the answer has no templateID or no buildID");
  if (code == CLOCHE_OK) {
    snprintf(b->template_id, sizeof b->template_id, "%s", template_id);
    snprintf(b->build_id, sizeof b->build_id, "%s", build_id);
  }
  arena_free(&a);
  return code == CLOCHE_OK ? next_archive(op) : code;
}

enum cloche_code cloche_build(struct cloche *client, struct cloche_recipe *recipe, const char *name,
                              const struct cloche_build *options, struct cloche_build_info **info,
                              const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_build, o, options);
  if (info)
    *info = NULL;
  struct cloche_op *op = op_begin(client, NULL, call, OP_ENDLESS, error);
  if (!op)
    return op_not_begun(call);
  req_api(op, "POST", "/v3/templates");
  req_json(op);
  buf_puts(&op->body, "{\"name\":");
  buf_json(&op->body, name);
  if (o.tags)
    buf_puts(&op->body, ",\"tags\":"), put_texts(&op->body, o.tags);
  if (o.cpu_count)
    buf_printf(&op->body, ",\"cpuCount\":%d", o.cpu_count);
  if (o.memory_mb)
    buf_printf(&op->body, ",\"memoryMB\":%d", o.memory_mb);
  if (o.isolation)
    buf_puts(&op->body, ",\"isolation\":"), buf_json(&op->body, o.isolation);
  buf_puts(&op->body, "}");
  op->on_reply = on_asked;
  op->out = info;
  if (op_state(op, sizeof(struct building), building_free)) {
    struct building *b = op->state;
    b->o = o;
    enum cloche_code code = pack_steps(b, recipe, &op->error);
    put_recipe(&b->recipe, recipe, o.force);
    if (code != CLOCHE_OK || b->recipe.failed)
      op->failed = code != CLOCHE_OK ? code : CLOCHE_ENOMEM;
  }
  return op_go(op, error);
}
