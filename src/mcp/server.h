/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the role `mcp`: sessions over HTTP, for gates.
 *
 * The supervisor starts it when a gate first asks for it. Connections come as descriptors over a link from each gate,
 * which has checked the key and names the team in a header of its own. The way back to the API is the same link: the
 * role makes a pair of sockets and hands one end to the gate, which serves it like a client. So it has no network, no
 * file and no right; it holds the keys of the clients that use it, and nothing else. A role that is started again finds
 * the sandbox of a session by its ID, which the sandbox carries as metadata. */
#ifndef CLOCHE_MCP_SERVER_H
#define CLOCHE_MCP_SERVER_H

#include "mcp/mcp_config.h"

int mcp_main(const struct mcp_role_config *config);

#endif
