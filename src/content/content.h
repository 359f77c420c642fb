/* SPDX-License-Identifier: Apache-2.0 */
/* content.h - the content role: the one process that works with paths inside volumes.
 *
 * Start here in this folder. Volumes are trees that boxes write to, hostile to whoever walks them; and the content API
 * names paths in them on behalf of strangers. So neither the gate (which has no files) nor the warden (which is root)
 * does it. This process is root of a user namespace that has the ids of volumes and no others, with capabilities over
 * files and nothing else, in an empty root, under a list of system calls. With each request it gets a descriptor of one
 * volume's root, and knows no other name for it.
 *
 * It promises: nothing outside of that descriptor is reached, whatever links there are and whatever a box renames
 * meanwhile (file_ops.h); a file that is uploaded appears whole or not at all, and what nobody finishes leaves nothing;
 * one volume, or one team, occupies a part of the threads at most, so a slow filesystem delays its own requests only.
 * content.c has the loop, file_ops.c, file_listing.c and tree_remove.c what requests do, content_confine.c gives up the
 * rights. */
#ifndef CLOCHE_CONTENT_CONTENT_H
#define CLOCHE_CONTENT_CONTENT_H

#include "content/content_config.h"

int content_main(const struct content_config *config);

#endif
