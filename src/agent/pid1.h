/* SPDX-License-Identifier: Apache-2.0 */
/* pid1.h - being the first process of a box: signals, orphans, an orderly end. */
#ifndef CLOCHE_AGENT_PID1_H
#define CLOCHE_AGENT_PID1_H

#include "base/base.h"
#include <uv.h>

/* Dispositions, mask, umask, descriptors 0 to 3, limits, oom score. Before anything else. */
void pid1_prepare(void);
void pid1_default_signals(void); /* forgets what was ignored when the program was started */

/* Starts to listen for signals. `leave` is called once when the box is to end, from the loop. */
int pid1_start(uv_loop_t *loop, void (*leave)(void), struct err *err);

#endif
