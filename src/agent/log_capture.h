/* SPDX-License-Identifier: Apache-2.0 */
/* log_capture.h - what the box's processes and kernels print, kept in a bounded ring (wire/logring.h) that the control
 * plane reads without asking the agent. The file is made at the first line; a box that prints nothing has none. */
#ifndef CLOCHE_AGENT_LOG_CAPTURE_H
#define CLOCHE_AGENT_LOG_CAPTURE_H

#include "base/base.h"

/* Output of a process or a kernel: one entry per line. `who` names it (a pid, a context), `stream` is stdout or stderr.
 */
void log_capture_output(const char *logger, const char *who, const char *stream, struct str chunk);
void log_capture_end(const char *who); /* it prints no more: a line without its newline is one too */
/* The same where the text is already escaped as in a JSON string. */
void log_capture_escaped(const char *logger, const char *who, const char *stream, struct str body);

#endif
