/* SPDX-License-Identifier: Apache-2.0 */
/* service.c - finds methods, users and paths for RPC handlers. */
#include "agent/envd/service.h"
#include "agent/envd/resolve.h"

const struct rpc_method *service_method(struct str path)
{
  const struct rpc_method *tables[] = {process_methods, fs_methods, watch_methods};
  for (size_t i = 0; i < ARRAY_LEN(tables); i++)
    for (const struct rpc_method *m = tables[i]; m->path; m++)
      if (str_is(path, m->path))
        return m;
  return NULL;
}

int service_user(struct rpc_call *c, struct user *out)
{
  const struct agent *agent = rpc_context(c);
  struct str name = rpc_user(c);
  int rc = user_find(name.p ? name : str_of(agent->default_user), out);
  if (rc == 0)
    return 0;
  if (rc != -ENOENT)
    rpc_fail(c, RPC_RESOURCE_EXHAUSTED, "cannot read the user database: %s", strerror(-rc));
  else if (name.p)
    rpc_fail(c, RPC_UNAUTHENTICATED, "invalid username: '" STR_FMT "'", STR_ARG(name));
  else
    rpc_fail(c, RPC_UNAUTHENTICATED, "invalid default user: '%s'", agent->default_user);
  return rc;
}

int service_path(struct rpc_call *c, struct str path, const struct user *u, struct buf *out)
{
  const struct agent *agent = rpc_context(c);
  struct err err = ERR_NONE;
  int rc = resolve_path(path, u, agent->default_workdir, out, &err);
  if (rc < 0)
    rpc_fail(c, RPC_INVALID_ARGUMENT, "%s", err.msg);
  return rc;
}
