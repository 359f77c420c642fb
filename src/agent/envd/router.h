/* SPDX-License-Identifier: Apache-2.0 */
/* router.h - every request to the envd API enters here and is sent on. */
#ifndef CLOCHE_AGENT_ENVD_ROUTER_H
#define CLOCHE_AGENT_ENVD_ROUTER_H

#include "agent/agent.h"
#include "net/http.h"

void router_request(struct http_x *x, void *agent);

#endif
