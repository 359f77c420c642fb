/* SPDX-License-Identifier: Apache-2.0 */
/* gate_role.h - what a gate keeps of its rights. It reads bytes from strangers, so it holds nothing worth stealing: an
 * empty root, no socket of its own making, and of the calls below only what moves bytes between descriptors that it
 * was given. It writes files that the warden opened for uploads. A pair of sockets is a connection to the MCP role. */
#ifndef CLOCHE_GATE_ROLE_H
#define CLOCHE_GATE_ROLE_H

#include "base/base.h"
#include "confine/confine.h"
#include <seccomp.h>

static const int gate_calls[] = {
    SCMP_SYS(pwrite64),        SCMP_SYS(sendfile), SCMP_SYS(splice),    SCMP_SYS(tee),
    SCMP_SYS(accept),          SCMP_SYS(accept4),  SCMP_SYS(dup3),      SCMP_SYS(timerfd_create),
    SCMP_SYS(timerfd_settime), SCMP_SYS(rseq),     SCMP_SYS(getrlimit), SCMP_SYS(set_robust_list),
    SCMP_SYS(socketpair),
};

static const struct confine_role gate_role = {
    .name = "cloche-gate", .calls = gate_calls, .ncalls = ARRAY_LEN(gate_calls), .writes_files = true};

#endif
