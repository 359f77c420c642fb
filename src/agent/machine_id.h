/* machine.h - the box's machine id: two boxes have not the same one, and a box keeps its own. */
#ifndef CLOCHE_MACHINE_H
#define CLOCHE_MACHINE_H

#include <stdbool.h>

/* Writes /etc/machine-id where a template left it empty; `again`: also where it is one that was written here, because the box was
 * made from another one's memory. What a user wrote stays, and so does a box without that file. */
void machine_name(bool again);

#endif
