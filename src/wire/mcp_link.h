/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_link.h - what a gate and the MCP role send each other: single letters, each with one end of a pair of sockets on
 * which HTTP is spoken. */
#ifndef CLOCHE_WIRE_MCP_LINK_H
#define CLOCHE_WIRE_MCP_LINK_H

enum mcp_link_letter {
  MCP_LINK_SERVE = 'S', /* from the gate: a client's connection to serve */
  MCP_LINK_API = 'A'    /* from the role: a connection to the API */
};

#define MCP_TEAM_HEADER "Cloche-Team" /* set by the gate, taken from nobody else */

#endif
