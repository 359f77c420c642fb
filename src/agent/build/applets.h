/* SPDX-License-Identifier: Apache-2.0 */
/* applets.h - small tools of a template build that the agent's own program runs inside the box, as a process of its
 * own: no image needs tools for them. `agent copy ...`, `agent expand ...`, `agent workdir ...`, `agent trust`. */
#ifndef CLOCHE_AGENT_BUILD_APPLETS_H
#define CLOCHE_AGENT_BUILD_APPLETS_H

#include "base/base.h"

#define APPLET_VALUES "\036values\036" /* precedes what `expand` prints, whatever a login shell printed before */

int applet_main(int argc, char **argv); /* the exit status */
/* $NAME and ${NAME} from `get`, everything else to the letter. */
int applet_expand(struct str text, const char *(*get)(const char *name), struct buf *out);

#endif
