/* SPDX-License-Identifier: Apache-2.0 */
/* agent_boot.h - the agent's side of its launch: reads the warden's packet from fd 3 (wire/boot_packet.h) and answers
 * it. */
#ifndef CLOCHE_AGENT_AGENT_BOOT_H
#define CLOCHE_AGENT_AGENT_BOOT_H

#include "agent/agent.h"

enum { BOOT_BY_HAND, BOOT_DONE, BOOT_WAITING, BOOT_BUILDS };

/* Waits for a packet and applies it: done, waiting (another one will come; boot_wait receives it), a box for building
 * (boot_build answers), or fd 3 is no boot socket because the agent was started by hand. Negative when the packet can't
 * be used. */
int boot_receive(struct agent *a, struct err *err);
/* Answers when the template's start command is ready, if it has one. */
void boot_finish(struct agent *a);
/* Goes on with the launch when the next packet comes. A warden that leaves before that ends the box. */
void boot_wait(struct agent *a);
/* Reports to the warden and closes the socket; number 3 stays taken. failure NULL = ready. */
void boot_answer(const char *failure);

/* Reports that the box is ready, and keeps the socket for commands. */
void boot_build(struct agent *a);

#endif
