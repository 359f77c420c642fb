/* pool.h - disks of boxes, made ahead.
 *
 * Attaching a loop device and mounting a fresh image take milliseconds, nearly all of it waiting in the kernel. Whoever
 * asks once for a disk of some size gets the next ones of that size ready made: a thread keeps POOL_READY of them
 * mounted, their images below <boxes>/.ready. A process that dies leaves only image files, which the next one removes. */
#ifndef CLOCHE_POOL_H
#define CLOCHE_POOL_H

#include "jail/disk.h"

#define POOL_READY 8
#define POOL_KINDS 8 /* sizes kept ready at a time */

/* A ready disk: its image becomes `image`. The detached mount, or -ENOENT when there is none right now. */
int pool_take(const char *boxes, const struct jail_limits *limits, const char *image);
void pool_close(void); /* ends the thread, gives every ready disk back; the next pool_take starts anew */

#endif
