/* SPDX-License-Identifier: Apache-2.0 */
/* audit_role.h - what the audit role keeps of its rights: one directory, by a descriptor, in which it writes, renames
 * and removes files. It can create no socket. */
#ifndef CLOCHE_AUDIT_ROLE_H
#define CLOCHE_AUDIT_ROLE_H

#include "base/base.h"
#include "confine/confine.h"
#include <seccomp.h>
#include <sys/socket.h>

static const int audit_calls[] = {SCMP_SYS(openat),     SCMP_SYS(renameat),   SCMP_SYS(renameat2),  SCMP_SYS(unlinkat),
                                  SCMP_SYS(newfstatat), SCMP_SYS(statx),      SCMP_SYS(getdents64), SCMP_SYS(fdatasync),
                                  SCMP_SYS(ftruncate),  SCMP_SYS(faccessat2), SCMP_SYS(rseq)};

static const struct confine_role audit_role = {.name = "cloche-audit",
                                               .calls = audit_calls,
                                               .ncalls = ARRAY_LEN(audit_calls),
                                               .fds_max = 1024,
                                               .memory_max = (uint64_t)1 << 30,
                                               .writes_files = true};

#endif
