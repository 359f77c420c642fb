/* links.h - names that a dump gives to open files which lost theirs, for the time of the sleep.
 *
 * A file that is open, whose name is gone and that has another name elsewhere can't be found again by what is known of it. criu
 * makes a link to it beside its old place (scripts/criu-links.h) and writes that down in the image. The link is needed until the box
 * is awake for good; then, or when nothing comes of the dump, it is taken away here. */
#ifndef CLOCHE_LINKS_H
#define CLOCHE_LINKS_H

#include <stdbool.h>
#include <sys/types.h>

#define LINKS_FILE "links"

/* Takes away what the image `dir` names from the root of process `pid`. `exact`: only what still is the file it was made for, where the
 * box ran meanwhile; a copy of the box has other inodes. */
void links_sweep(int dir, pid_t pid, bool exact);

#endif
