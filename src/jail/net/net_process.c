/* SPDX-License-Identifier: Apache-2.0 */
/* net_process.c - see net_process.h. */
#include "jail/net/net_process.h"

#include "base/base.h"
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

void net_process_drop_rights(void)
{
  struct rlimit none = {0, 0};
  for (char **e = environ; e && *e; e++)
    explicit_bzero(*e, strlen(*e));
  setrlimit(RLIMIT_NPROC, &none);
  if (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, NET_PROCESS_USER, NET_PROCESS_USER, NET_PROCESS_USER) ||
      syscall(SYS_setresuid, NET_PROCESS_USER, NET_PROCESS_USER, NET_PROCESS_USER) ||
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _exit(1);
  proc_hide(); /* its memory is a copy of the daemon's */
}
