/* SPDX-License-Identifier: Apache-2.0 */
/* env.c - an environment built name by name. */
#include "agent/env.h"

static ptrdiff_t env_index(const struct env *e, struct str name)
{
  for (size_t i = 0; i < e->n; i++)
    if (strncmp(e->p[i], name.p, name.n) == 0 && e->p[i][name.n] == '=')
      return (ptrdiff_t)i;
  return -1;
}

static char *pair_text(struct str name, struct str value)
{
  char *text = xmalloc(name.n + value.n + 2);
  memcpy(text, name.p, name.n);
  text[name.n] = '=';
  if (value.n)
    memcpy(text + name.n + 1, value.p, value.n);
  text[name.n + 1 + value.n] = '\0';
  return text;
}

void env_set(struct env *e, struct str name, struct str value)
{
  if (name.n == 0 || str_find(name, '=') >= 0 || memchr(name.p, 0, name.n) || (value.n && memchr(value.p, 0, value.n)))
    return;
  ptrdiff_t at = env_index(e, name);
  char *text = pair_text(name, value);
  if (at < 0) {
    vec_push(e, text);
    return;
  }
  free(e->p[at]);
  e->p[at] = text;
}

const char *env_get(const struct env *e, const char *name)
{
  ptrdiff_t at = env_index(e, str_of(name));
  return at < 0 ? NULL : e->p[at] + strlen(name) + 1;
}

void env_merge(struct env *e, const struct env *more)
{
  for (size_t i = 0; i < more->n; i++) {
    struct str name, value;
    str_cut(str_of(more->p[i]), '=', &name, &value);
    env_set(e, name, value);
  }
}

void env_merge_json(struct env *e, const struct json *object)
{
  if (!json_is(object, JSON_OBJECT))
    return;
  for (const struct json *kid = object->kids; kid; kid = kid->next)
    if (json_is(kid, JSON_STRING))
      env_set(e, kid->key, kid->text);
}

char *const *env_array(struct env *e)
{
  vec_push(e, NULL);
  e->n--;
  return e->p;
}

void env_free(struct env *e)
{
  for (size_t i = 0; i < e->n; i++)
    free(e->p[i]);
  vec_free(e);
}
