/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - a session over standard input and output: one message per line. */
#ifndef CLOCHE_MCP_LINES_H
#define CLOCHE_MCP_LINES_H

#include "mcp/mcp.h"

/* Serves until the input ends or SIGTERM or SIGINT comes, then ends the session. The exit status. */
int mcp_lines_run(const struct cloche_config *config, const struct mcp_options *options);

#endif
