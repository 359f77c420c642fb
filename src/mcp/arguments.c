/* SPDX-License-Identifier: Apache-2.0 */
/* arguments.c - what a model gave a tool. A wrong value is answered as a result, which the model sees and mends. */
#include "mcp/session.h"

static struct json *argument(struct mcp_call *c, const char *name)
{
  struct json *v = json_get(c->arguments, name);
  return json_given(v) ? v : NULL;
}

bool arg_text(struct mcp_call *c, const char *name, bool required, const char **out)
{
  struct json *v = argument(c, name);
  *out = NULL;
  if (!v && required) {
    call_tool_failed(c, "the argument '%s' is missing", name);
    return false;
  }
  if (!v)
    return true;
  if (v->type != JSON_STRING || str_find(v->text, 0) >= 0) {
    call_tool_failed(c, "the argument '%s' must be a text without NUL bytes", name);
    return false;
  }
  *out = arena_z(&c->arena, v->text);
  if (!*out)
    call_tool_failed(c, "the argument '%s' is too long", name);
  return *out != NULL;
}

bool arg_int(struct mcp_call *c, const char *name, int64_t least, int64_t most, int64_t otherwise, int64_t *out)
{
  struct json *v = argument(c, name);
  *out = otherwise;
  if (!v || (!json_int(v, out) && *out >= least && *out <= most))
    return true;
  call_tool_failed(c, "the argument '%s' must be a whole number from %lld to %lld", name, (long long)least,
                   (long long)most);
  return false;
}

bool arg_bool(struct mcp_call *c, const char *name, bool otherwise, bool *out)
{
  struct json *v = argument(c, name);
  *out = v && v->type == JSON_BOOL ? v->flag : otherwise;
  if (!v || v->type == JSON_BOOL)
    return true;
  call_tool_failed(c, "the argument '%s' must be true or false", name);
  return false;
}

static bool plain_text(struct str s)
{
  return str_find(s, 0) < 0;
}

static struct cloche_pair *pairs_of(struct arena *a, const struct json *v, size_t *n)
{
  struct cloche_pair *pairs = arena_alloc(a, (v->count + 1) * sizeof(*pairs));
  if (!pairs || v->type != JSON_OBJECT)
    return NULL;
  for (const struct json *kid = v->kids; kid; kid = kid->next) {
    if (kid->type != JSON_STRING || !plain_text(kid->text) || !plain_text(kid->key))
      return NULL;
    pairs[*n].name = arena_z(a, kid->key);
    pairs[(*n)++].value = arena_z(a, kid->text);
  }
  return pairs;
}

bool arg_pairs(struct mcp_call *c, const char *name, struct cloche_pair **out, size_t *n)
{
  struct json *v = argument(c, name);
  *out = NULL;
  *n = 0;
  if (!v)
    return true;
  *out = pairs_of(&c->arena, v, n);
  if (!*out)
    call_tool_failed(c, "the argument '%s' must be an object of texts", name);
  return *out != NULL;
}
