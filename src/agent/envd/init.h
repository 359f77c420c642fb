/* SPDX-License-Identifier: Apache-2.0 */
/* init.h - POST /init: the control plane sends the box its token, variables and defaults; GET /envs shows the
 * variables. */
#ifndef CLOCHE_AGENT_ENVD_INIT_H
#define CLOCHE_AGENT_ENVD_INIT_H

#include "agent/agent.h"
#include "net/http.h"

enum init_result { INIT_APPLIED, INIT_STALE, INIT_BAD, INIT_REFUSED, INIT_RESET_REFUSED };

/* Applies a body (may be empty). `control` = the caller proved to be the control plane, which may change the token. */
enum init_result init_apply(struct agent *a, struct str body, bool control, struct err *err);

void init_request(struct http_x *x, struct agent *a);
void envs_request(struct http_x *x, struct agent *a);

#endif
