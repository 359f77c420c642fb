/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - the server's listening sockets: opened here, given by a .socket unit, or kept by the service manager
 * since the server before, so that a restart refuses no connection. */
#ifndef CLOCHE_CLI_LISTENER_H
#define CLOCHE_CLI_LISTENER_H

#include "cli/service_manager.h"
#include "wire/sizes.h"

/* n sockets for one address, one per gate, under the name of its setting:
 *   - where a .socket unit gave some (FileDescriptorName= is the setting's name), its gates share those, whatever the
 *     setting says;
 *   - else those that the manager kept for this address, and new ones (SO_REUSEPORT) for the rest.
 * `host` and `port` become those that are listened on. */
int listeners_open(struct service_manager *m, const char *setting, const char *address, size_t n, int *fds,
                   char host[LISTEN_HOST_SIZE], uint16_t *port, struct err *err);

#endif
