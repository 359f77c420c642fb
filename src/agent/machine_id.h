/* SPDX-License-Identifier: Apache-2.0 */
/* machine_id.h - the box's machine id: two boxes have not the same one, and a box keeps its own. */
#ifndef CLOCHE_AGENT_MACHINE_ID_H
#define CLOCHE_AGENT_MACHINE_ID_H

#include <stdbool.h>

/* Writes /etc/machine-id where a template left it empty; `again`: also where it is one that was written here, because
 * the box was made from another one's memory. What a user wrote stays, and so does a box without that file. */
void machine_id_write(bool again);

#endif
