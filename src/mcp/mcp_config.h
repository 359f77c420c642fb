/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_config.h - the settings of the MCP role. The rows of src/cli/config.c write them; the role only reads. */
#ifndef CLOCHE_MCP_CONFIG_H
#define CLOCHE_MCP_CONFIG_H

#include <stdint.h>

struct mcp_role_config {
  unsigned uid;           /* who it becomes; 0 = stays (tests without root) */
  unsigned sessions;      /* at once, of all teams */
  unsigned team_sessions; /* of one team */
  unsigned team_mb;       /* MiB for messages of one team under way */
  unsigned session_boxes; /* sandboxes that one session may make */
  unsigned session_calls; /* calls of one session at once */
  unsigned idle_s;        /* how long a session's sandbox waits for the next call */
  unsigned text_kb;       /* of each text in a result */
  unsigned result_kb;     /* of pictures and data in a result */
  unsigned timeout_s;     /* longest run of one call */
  uint64_t body_max;      /* bytes of a message */
};

#endif
