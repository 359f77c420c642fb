/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: JSON becomes structs by tables, failures become errors with the server's own words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

bool reply_good(const struct cloche_op *op)
{
  return op->status >= 200 && op->status < 300;
}

char *model_raw(struct arena *a, const struct json *j)
{
  return j ? arena_text(a, j->raw, j->raw_len) : NULL;
}

static bool fill_pairs(struct arena *a, const struct json *j, const struct cloche_pair **out, size_t *count)
{
  size_t n = j && j->type == JSON_OBJECT ? j->len : 0, i = 0;
  struct cloche_pair *pairs = arena_array(a, n, sizeof *pairs);
  if (!pairs)
    return false;
  for (const struct json *m = n ? j->child : NULL; m; m = m->next) {
    const char *value = m->type == JSON_STRING ? m->text : model_raw(a, m);
    if (!value)
      return false;
    pairs[i++] = (struct cloche_pair){m->key, value};
  }
  *out = pairs;
  *count = n;
  return true;
}

static bool fill_texts(struct arena *a, const struct json *j, const char *const **out)
{
  size_t n = j && j->type == JSON_ARRAY ? j->len : 0, i = 0;
  const char **texts = arena_array(a, n + 1, sizeof *texts);
  if (!texts)
    return false;
  for (const struct json *m = n ? j->child : NULL; m; m = m->next)
    if (m->type == JSON_STRING)
      texts[i++] = m->text;
  *out = texts;
  return true;
}

bool model_array(struct arena *a, const struct model *m, const struct json *j, const void **items, size_t *count)
{
  size_t n = j && j->type == JSON_ARRAY ? j->len : 0;
  char *all = arena_array(a, n, m->size);
  if (!all)
    return false;
  size_t i = 0;
  for (const struct json *e = n ? j->child : NULL; e; e = e->next)
    if (!model_fill(a, m, e, all + m->size * i++))
      return false;
  *items = all;
  *count = n;
  return true;
}

static const struct json *at_path(const struct json *j, const char *key)
{
  const char *dot = strchr(key, '.');
  if (!dot)
    return json_get(j, key);
  char outer[64];
  snprintf(outer, sizeof outer, "%.*s", (int)(dot - key), key);
  return json_get(json_get(j, outer), dot + 1);
}

static bool fill_field(struct arena *a, const struct field *f, const struct json *object, char *out)
{
  const struct json *j = f->kind == F_SELF ? object : at_path(object, f->key);
  void *to = out + f->offset;
  switch (f->kind) {
  case F_TEXT:
    if (j && j->type == JSON_STRING)
      *(const char **)to = j->text;
    return true;
  case F_INT:
    *(int64_t *)to = json_int(j, 0);
    return true;
  case F_U32:
    *(uint32_t *)to = (uint32_t)json_int(j, 0);
    return true;
  case F_DOUBLE:
    *(double *)to = json_double(j);
    return true;
  case F_BOOL:
    *(bool *)to = j && j->type == JSON_TRUE;
    return true;
  case F_RAW:
  case F_SELF:
    *(const char **)to = model_raw(a, j);
    return !j || *(const char **)to;
  case F_PAIRS:
    return fill_pairs(a, j, to, (size_t *)(void *)(out + f->count_offset));
  case F_TEXTS:
    return fill_texts(a, j, to);
  case F_LIST:
    return model_array(a, f->of, j, to, (size_t *)(void *)(out + f->count_offset));
  }
  return true;
}

bool model_fill(struct arena *a, const struct model *m, const struct json *j, void *out)
{
  for (const struct field *f = m->fields; f->key; f++)
    if (!fill_field(a, f, j, out))
      return false;
  return true;
}

/* "...: it ended at <time>, <why>": the why. */
static const char *cause_in(const char *message)
{
  const char *at = strstr(message, "it ended at ");
  const char *comma = at ? strstr(at, ", ") : NULL;
  return comma ? comma + 2 : NULL;
}

enum cloche_code reply_text_error(struct cloche_op *op, enum cloche_code code, const char *message)
{
  const char *cause = cause_in(message);
  if (cause || (code == CLOCHE_ENET && strstr(message, "was not found")))
    code = CLOCHE_EGONE;
  else if (code == CLOCHE_ENET && strstr(message, "port is not open"))
    code = CLOCHE_EPORT;
  op_fail(op, code, "%s", message);
  if (cause && !(op->error.cause = strdup(cause)))
    return CLOCHE_ENOMEM;
  return code;
}

static enum cloche_code code_of_status(long status)
{
  static const struct {
    long status;
    enum cloche_code code;
  } rows[] = {{400, CLOCHE_EINVAL},  {401, CLOCHE_EAUTH},    {403, CLOCHE_EDENIED}, {404, CLOCHE_ENOTFOUND},
              {409, CLOCHE_EEXISTS}, {422, CLOCHE_EINVAL},   {429, CLOCHE_ELIMIT},  {502, CLOCHE_ENET},
              {503, CLOCHE_EBUSY},   {504, CLOCHE_ETIMEOUT}, {507, CLOCHE_ESPACE}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].status == status)
      return rows[i].code;
  return CLOCHE_ESERVER;
}

static enum cloche_code code_of_word(const char *word)
{
  static const struct {
    const char *word;
    enum cloche_code code;
  } rows[] = {{"not_found", CLOCHE_ENOTFOUND},        {"invalid_argument", CLOCHE_EINVAL},
              {"unauthenticated", CLOCHE_EAUTH},      {"permission_denied", CLOCHE_EDENIED},
              {"already_exists", CLOCHE_EEXISTS},     {"resource_exhausted", CLOCHE_ELIMIT},
              {"deadline_exceeded", CLOCHE_ETIMEOUT}, {"canceled", CLOCHE_ECANCELED},
              {"unavailable", CLOCHE_ENET},           {"failed_precondition", CLOCHE_EINVAL}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(rows[i].word, word) == 0)
      return rows[i].code;
  return CLOCHE_ESERVER;
}

enum cloche_code rpc_error(struct cloche_op *op, const struct json *error)
{
  const char *word = json_text(error, "code"), *message = json_text(error, "message");
  return reply_text_error(op, word ? code_of_word(word) : CLOCHE_ESERVER, message ? message : word ? word : "error");
}

enum cloche_code reply_failed(struct cloche_op *op)
{
  struct arena a = {0};
  bool no_memory;
  struct json *j = json_read(&a, op->in.data, op->in.len, &no_memory);
  const char *message = json_text(j, "message");
  if (!message)
    message = json_text(j, "detail");
  const char *word = json_text(j, "code");
  enum cloche_code code = word && !op->is_api ? code_of_word(word) : code_of_status(op->status);
  if (code == CLOCHE_ESERVER)
    code = code_of_status(op->status);
  char text[600];
  if (!message && op->in.len)
    snprintf(text, sizeof text, "%.*s", (int)(op->in.len < 500 ? op->in.len : 500), op->in.data);
  else if (!message)
    snprintf(text, sizeof text, "HTTP %ld", op->status);
  code = reply_text_error(op, code, message ? message : text);
  arena_free(&a);
  return code;
}

struct json *reply_json(struct cloche_op *op, struct arena *a, enum cloche_code *code)
{
  bool no_memory = false;
  struct json *j = json_read(a, op->in.data, op->in.len, &no_memory);
  if (!j)
    *code = no_memory ? CLOCHE_ENOMEM : op_fail(op, CLOCHE_EPROTO, "%s: the answer is no JSON", op->url.data);
  return j;
}

enum cloche_code answer(struct cloche_op *op, void *result)
{
  if (op->out)
    *(void **)op->out = result;
  else
    cloche_free(result);
  return CLOCHE_OK;
}

enum cloche_code reply_ok(struct cloche_op *op)
{
  return reply_good(op) ? CLOCHE_OK : reply_failed(op);
}

enum cloche_code reply_existed(struct cloche_op *op)
{
  if (!reply_good(op) && op->status != 404)
    return reply_failed(op);
  if (op->out)
    *(bool *)op->out = op->status != 404;
  return CLOCHE_OK;
}

enum cloche_code reply_model(struct cloche_op *op)
{
  if (!reply_good(op))
    return reply_failed(op);
  enum cloche_code code = CLOCHE_OK;
  void *result = result_new(op->model->size);
  if (!result)
    return CLOCHE_ENOMEM;
  struct arena *a = result_arena(result);
  struct json *j = reply_json(op, a, &code);
  const struct json *inner = j && op->model->list_key ? json_get(j, op->model->list_key) : j;
  if (j && !model_fill(a, op->model, inner, result))
    code = CLOCHE_ENOMEM;
  if (code == CLOCHE_OK)
    return answer(op, result);
  cloche_free(result);
  return code;
}

struct any_list {
  const void *items;
  size_t count;
  const char *next;
  int64_t total;
};

static enum cloche_code list_of(struct cloche_op *op, bool has_next)
{
  if (!reply_good(op))
    return reply_failed(op);
  enum cloche_code code = CLOCHE_OK;
  struct any_list *list = result_new(sizeof *list);
  if (!list)
    return CLOCHE_ENOMEM;
  struct arena *a = result_arena(list);
  struct json *j = reply_json(op, a, &code);
  const struct json *array = j && op->model->list_key ? json_get(j, op->model->list_key) : j;
  if (j && !model_array(a, op->model, array, &list->items, &list->count))
    code = CLOCHE_ENOMEM;
  list->total = -1;
  if (has_next && op->total_running[0])
    list->total = strtoll(op->total_running, NULL, 10);
  if (has_next && op->next_token[0] && !(list->next = arena_text(a, op->next_token, strlen(op->next_token))))
    code = CLOCHE_ENOMEM;
  if (code == CLOCHE_OK)
    return answer(op, list);
  cloche_free(list);
  return code;
}

enum cloche_code reply_list(struct cloche_op *op)
{
  return list_of(op, false);
}

enum cloche_code reply_list_next(struct cloche_op *op)
{
  return list_of(op, true);
}
