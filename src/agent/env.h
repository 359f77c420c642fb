/* SPDX-License-Identifier: Apache-2.0 */
/* env.h - an environment: NAME=value strings, each name once, the last setting wins. */
#ifndef CLOCHE_AGENT_ENV_H
#define CLOCHE_AGENT_ENV_H

#include "base/base.h"

struct env {
  char **p; /* owned strings, closed by a NULL once env_array() was called */
  size_t n, cap;
};

void env_set(struct env *e, struct str name,
             struct str value);                                /* names that are empty or hold '=' or NUL are ignored */
const char *env_get(const struct env *e, const char *name);    /* NULL when absent */
void env_merge(struct env *e, const struct env *more);         /* `more` wins */
void env_merge_json(struct env *e, const struct json *object); /* string members only */
char *const *env_array(struct env *e);                         /* for execve; borrowed, valid until the next change */
void env_free(struct env *e);
#define cleanup_env __attribute__((cleanup(env_free)))

#endif
