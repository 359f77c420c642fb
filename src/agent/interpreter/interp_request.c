/* SPDX-License-Identifier: Apache-2.0 */
/* interp_request.c - bodies read and their faults described; see interp_request.h. */
#include "agent/interpreter/interp_request.h"

/* Collects faults; the body is complete after faults_close. */
struct faults {
  struct jw w;
  int n;
};

static void fault_open(struct faults *f, const char *type, const char *field, struct str member, const char *msg)
{
  if (f->n++ == 0) {
    jw_open(&f->w, '{');
    jw_key(&f->w, "detail");
    jw_open(&f->w, '[');
  }
  jw_open(&f->w, '{');
  jw_key(&f->w, "type");
  jw_z(&f->w, type);
  jw_key(&f->w, "loc");
  jw_open(&f->w, '[');
  jw_z(&f->w, "body");
  if (field)
    jw_z(&f->w, field);
  if (member.p)
    jw_str(&f->w, member);
  jw_close(&f->w, ']');
  jw_key(&f->w, "msg");
  jw_z(&f->w, msg);
  jw_key(&f->w, "input");
}

static void fault_add(struct faults *f, const char *type, const char *field, struct str member, const char *msg,
                      const struct json *input)
{
  fault_open(f, type, field, member, msg);
  if (input)
    jw_value(&f->w, input);
  else
    jw_null(&f->w);
  jw_close(&f->w, '}');
}

static int faults_close(struct faults *f)
{
  if (!f->n)
    return 0;
  jw_close(&f->w, ']');
  jw_close(&f->w, '}');
  return -EINVAL;
}

/* Text that is no JSON: the place is a number, so it is written by hand. */
static void fault_syntax(struct faults *f, const struct json_error *why)
{
  f->n++;
  buf_addf(f->w.b,
           "{\"detail\":[{\"type\":\"json_invalid\",\"loc\":[\"body\",%zu],\"msg\":\"JSON decode error\",\"input\":{},"
           "\"ctx\":{\"error\":",
           why->offset);
  json_put_str(f->w.b, str_of(why->what ? why->what : "invalid JSON"), true);
  buf_addz(f->w.b, "}}]}");
}

/* The body as an object, or NULL with its fault written and closed. */
static struct json *object_read(struct arena *a, struct str text, struct faults *f)
{
  struct json_error why = {0, NULL};
  if (!str_trim(text).n) {
    fault_add(f, "missing", NULL, STR_NONE, "Field required", NULL);
    faults_close(f);
    return NULL;
  }
  struct json *v = json_read(a, text, JSON_REPAIR_UTF8, &why);
  if (!v) {
    fault_syntax(f, &why);
    return NULL;
  }
  if (json_is(v, JSON_OBJECT))
    return v;
  if (v->type == JSON_NULL)
    fault_add(f, "missing", NULL, STR_NONE, "Field required", NULL);
  else
    fault_add(f, "model_attributes_type", NULL, STR_NONE,
              "Input should be a valid dictionary or object to extract fields from", v);
  faults_close(f);
  return NULL;
}

static struct str name_read(const struct json *body, const char *field, struct faults *f)
{
  const struct json *v = json_get(body, field);
  if (!json_given(v))
    return STR_NONE;
  if (!json_is(v, JSON_STRING)) {
    fault_add(f, "string_type", field, STR_NONE, "Input should be a valid string", v);
    return STR_NONE;
  }
  return v->text.n ? v->text : STR_NONE;
}

static const struct json *env_read(const struct json *body, struct faults *f)
{
  const struct json *v = json_get(body, "env_vars");
  if (!json_given(v))
    return NULL;
  if (!json_is(v, JSON_OBJECT)) {
    fault_add(f, "dict_type", "env_vars", STR_NONE, "Input should be a valid dictionary", v);
    return NULL;
  }
  for (const struct json *m = v->kids; m; m = m->next)
    if (!json_is(m, JSON_STRING))
      fault_add(f, "string_type", "env_vars", m->key, "Input should be a valid string", m);
  return v;
}

int execute_request_read(struct arena *a, struct str text, struct execute_request *r, struct buf *wrong)
{
  struct faults f = {.w = {.b = wrong, .ascii = true}};
  *r = (struct execute_request){0};
  struct json *body = object_read(a, text, &f);
  if (!body)
    return -EINVAL;
  const struct json *code = json_get(body, "code");
  if (!code)
    fault_add(&f, "missing", "code", STR_NONE, "Field required", body);
  else if (!json_is(code, JSON_STRING))
    fault_add(&f, "string_type", "code", STR_NONE, "Input should be a valid string", code);
  else
    r->code = code->text;
  r->context_id = name_read(body, "context_id", &f);
  r->language = name_read(body, "language", &f);
  r->env = env_read(body, &f);
  return faults_close(&f);
}

int context_request_read(struct arena *a, struct str text, struct context_request *r, struct buf *wrong)
{
  struct faults f = {.w = {.b = wrong, .ascii = true}};
  *r = (struct context_request){0};
  struct json *body = object_read(a, text, &f);
  if (!body)
    return -EINVAL;
  r->language = name_read(body, "language", &f);
  r->cwd = name_read(body, "cwd", &f);
  return faults_close(&f);
}

int interrupt_request_read(struct arena *a, struct str text, struct interrupt_request *r, struct buf *wrong)
{
  struct faults f = {.w = {.b = wrong, .ascii = true}};
  *r = (struct interrupt_request){0};
  if (!str_trim(text).n)
    return 0;
  struct json *body = object_read(a, text, &f);
  if (!body)
    return -EINVAL;
  r->context_id = name_read(body, "context_id", &f);
  r->language = name_read(body, "language", &f);
  r->execution_id = name_read(body, "execution_id", &f);
  return faults_close(&f);
}
