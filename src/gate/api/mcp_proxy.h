/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_proxy.h - /mcp: requests whose key is right go to the MCP role, and its own requests to the API come back.
 *
 * The role is started when it is first needed. A request waits for it; one whose role dies gets 503, which clients
 * repeat. The role decides nothing that the API does not decide again: it calls with the client's own key. */
#ifndef CLOCHE_GATE_MCP_PROXY_H
#define CLOCHE_GATE_MCP_PROXY_H

struct gate;

void mcp_attach(struct gate *g, int fd); /* a link to the role; replaces the one before */

#endif
