/* SPDX-License-Identifier: Apache-2.0 */
/* router.h - start here: every request to the envd API (port 49983) enters here and is dispatched.
 *
 * Behind it: service.c (the tables of RPC methods), process_rpc.c and process.c (commands and terminals), fs_rpc.c and
 * entry.c (metadata of files), watch_rpc.c and watch.c (inotify), upload.c, download.c and compose.c (file content),
 * init.c (identity, token, variables), box_metrics.c. http_reply.h and rpc/rpc_call.h are the two ways to answer.
 *
 * The folder promises: no request is served without the access token where one is set; every operation runs as the user
 * that the request names, never as the agent; bodies stream with back-pressure in both directions; a process outlives
 * the request that started it and keeps its output order. */
#ifndef CLOCHE_AGENT_ENVD_ROUTER_H
#define CLOCHE_AGENT_ENVD_ROUTER_H

#include "agent/agent.h"
#include "net/http.h"

void router_request(struct http_x *x, void *agent);

#endif
