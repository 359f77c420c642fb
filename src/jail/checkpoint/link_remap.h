/* SPDX-License-Identifier: Apache-2.0 */
/* link_remap.h - names that a dump gives to open files which lost theirs, for the time of the sleep.
 *
 * A file that is open, whose name is gone and that has another name elsewhere can't be found again by what is known of
 * it. criu makes a link to it beside its old place (criu/include/cloche-link-remap.h) and writes that down in the
 * checkpoint. The link is needed until the box is awake for good; then, or when nothing comes of the dump, it is taken
 * away here. */
#ifndef CLOCHE_JAIL_CHECKPOINT_LINK_REMAP_H
#define CLOCHE_JAIL_CHECKPOINT_LINK_REMAP_H

#include <stdbool.h>
#include <sys/types.h>

#define LINK_REMAPS_FILE "links"

/* Takes away what the checkpoint `dir` names from the root of process `pid`. `exact`: only what still is the file it
 * was made for, where the box ran meanwhile; a copy of the box has other inodes. */
void link_remaps_remove(int dir, pid_t pid, bool exact);

#endif
