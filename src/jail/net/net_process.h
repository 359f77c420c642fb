/* SPDX-License-Identifier: Apache-2.0 */
/* net_process.h - processes of the daemon that read what boxes and strangers send: the name server of boxes and the
 * watcher of connections. They are forks without a program of their own. */
#ifndef CLOCHE_JAIL_NET_NET_PROCESS_H
#define CLOCHE_JAIL_NET_NET_PROCESS_H

#define NET_PROCESS_USER 65534 /* nobody */

/* Becomes that user, forgets the environment (which may hold the master key of secrets) and is traced by nobody. Ends
 * the process where it can't. PR_SET_PDEATHSIG is to be set after it. */
void net_process_drop_rights(void);

#endif
