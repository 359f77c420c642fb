/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_role.h - what the MCP role keeps of its rights: pairs of sockets, of which a gate gets one end. It can't connect
 * to anything. */
#ifndef CLOCHE_MCP_ROLE_H
#define CLOCHE_MCP_ROLE_H

#include "base/base.h"
#include "confine/confine.h"
#include <seccomp.h>

static const int mcp_calls[] = {SCMP_SYS(socketpair), SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime),
                                SCMP_SYS(rseq), SCMP_SYS(set_robust_list)};

/* libcurl 7.88 connects a socket that it was told is connected already. That it is under way is the one error after
 * which it looks whether the socket can be written to, which it can. */
static const struct confine_refusal mcp_refusals[] = {{SCMP_SYS(connect), EINPROGRESS}};

static const struct confine_role mcp_role = {.name = "cloche-mcp",
                                             .calls = mcp_calls,
                                             .ncalls = ARRAY_LEN(mcp_calls),
                                             .refusals = mcp_refusals,
                                             .nrefusals = ARRAY_LEN(mcp_refusals),
                                             .fds_max = 16384,
                                             .memory_max = (uint64_t)4 << 30};

#endif
