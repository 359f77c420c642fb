/* boot.h - the agent's side of its birth: reads the warden's packet from fd 3 (warden/boot.h) and answers it. */
#ifndef CLOCHE_AGENT_BOOT_H
#define CLOCHE_AGENT_BOOT_H

#include "agent/agent.h"

/* Waits for the packet and applies it. 1 = applied, 0 = fd 3 is no boot socket (started by hand), or negative. */
int boot_receive(struct agent *a, struct err *err);
/* Tells the warden and lets go of the socket; number 3 stays taken. failure NULL = ready. */
void boot_answer(const char *failure);

#endif
