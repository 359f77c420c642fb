/* SPDX-License-Identifier: Apache-2.0 */
/* root_audit.h - tells the audit role (src/audit/audit.h) what the host's root user asked the warden for, once it is
 * answered. Without that role each of these is one comparison. For rpc.c and warden.c. */
#ifndef CLOCHE_WARDEN_RPC_ROOT_AUDIT_H
#define CLOCHE_WARDEN_RPC_ROOT_AUDIT_H

#include "warden/rpc/request.h"

void root_audit_link(struct warden *w, int fd); /* the link to the role; a former one is given up */
/* "uid=0 pid=1234 login=1000": of the process that has connected; `login` is the user that logged in before it became
 * root, where the kernel knows (loginuid). */
void root_audit_who(int fd, char out[ROOT_WHO_SIZE]);
/* A request of root's, before it is handled. */
void root_audit_asked(const struct request *q, const char *what, bool changes);
void root_audit_gone(const struct ipc *ipc); /* that connection is closed */

#endif
