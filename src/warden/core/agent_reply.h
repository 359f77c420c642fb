/* SPDX-License-Identifier: Apache-2.0 */
/* agent_reply.h - everything the warden reads from a box: pure functions over bytes that root of the box may have
 * chosen. Nothing of them decides more than whether that one box is ready; texts become printable ASCII of bounded
 * length before anybody else sees them. */
#ifndef CLOCHE_WARDEN_AGENT_REPLY_H
#define CLOCHE_WARDEN_AGENT_REPLY_H

#include "base/base.h"
#include "wire/exec_packet.h"

#define AGENT_WORD_MAX   512 /* bytes of an answer to a boot packet; what is longer is cut */
#define AGENT_TEXT_MAX   400 /* bytes of a text that is passed on */
#define AGENT_STATUS_LEN 12  /* bytes of "HTTP/1.1 204" */

/* Anything but printable ASCII as '?', so that no line of a log and no text of an error can be forged. */
void agent_text(struct str in, char out[AGENT_TEXT_MAX + 1]);

/* The packet that answers a boot packet (boot_packet.h): 0 when the agent is ready; else -EIO and why. Empty: the agent
 * has ended. */
int agent_reply_ready(struct str packet, struct err *err);

/* A packet of a box that builds a template (exec_packet.h): 0, or -EPROTO. */
int agent_reply_exec(struct str packet, struct exec_event *word, struct str *bytes, struct err *err);

/* The beginning of an answer to POST /init: 0 for 204, else -EIO and what came instead. */
int agent_reply_status(struct str status, struct err *err);

#endif
