/* SPDX-License-Identifier: Apache-2.0 */
/* process_end.h - how a process ended, in the API's terms. */
#ifndef CLOCHE_AGENT_ENVD_PROCESS_END_H
#define CLOCHE_AGENT_ENVD_PROCESS_END_H

#include "agent/envd/messages.h"

#define END_TEXT 64

/* Fills an end event from a wait status; its strings point into `text`. */
void process_end_describe(int status, char text[END_TEXT], struct msg_end *out);

/* Ends stay readable for a while. A new process with the same pid or tag makes the old one forgotten. */
void process_end_keep(uint32_t pid, struct str tag, bool has_tag, int status);
void process_end_forget(uint32_t pid, struct str tag, bool has_tag);
bool process_end_find(const struct msg_selector *s, uint32_t *pid, int *status);

#endif
