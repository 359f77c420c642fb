/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - the two RPC services: their method tables, and what their handlers share. */
#ifndef CLOCHE_AGENT_ENVD_SERVICE_H
#define CLOCHE_AGENT_ENVD_SERVICE_H

#include "agent/agent.h"
#include "agent/user.h"
#include "rpc/rpc_call.h"

/* The method at that path, NULL when there is none. */
const struct rpc_method *service_method(struct str path);

extern const struct rpc_method process_methods[], fs_methods[], watch_methods[]; /* closed by a NULL path */

/* The caller's user, or the default one. Negative: the call has been answered. */
int service_user(struct rpc_call *c, struct user *out);
/* The path by the contract's rule (resolve.h). Negative: the call has been answered. */
int service_path(struct rpc_call *c, struct str path, const struct user *u, struct buf *out);

#endif
