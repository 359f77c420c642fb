/* logbook.h - what the box's processes and kernels print, kept in a bounded ring (warden/logring.h) that the control plane
 * reads without asking the agent. The file is made at the first line; a box that prints nothing has none. */
#ifndef CLOCHE_AGENT_LOGBOOK_H
#define CLOCHE_AGENT_LOGBOOK_H

#include "base/base.h"

/* Output of a process or a kernel: one entry per line. `who` names it (a pid, a context), `stream` is stdout or stderr. */
void logbook_output(const char *logger, const char *who, const char *stream, struct str chunk);
void logbook_end(const char *who); /* it prints no more: a line without its newline is one too */
/* The same where the text is already escaped as in a JSON string. */
void logbook_escaped(const char *logger, const char *who, const char *stream, struct str body);

#endif
