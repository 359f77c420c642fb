/* SPDX-License-Identifier: Apache-2.0 */
/* volume_files.h - open files on volumes, in a checkpoint.
 *
 * criu notes the size and the mode of each open file and refuses to restore a box when they are others. That is right
 * for the box's own disk, which nobody touches meanwhile; a volume is written to by other boxes. So both are taken out
 * of what the checkpoint says of files on volumes. The build id of a mapped program stays: memory that was mapped from
 * another program is worth nothing. */
#ifndef CLOCHE_JAIL_CHECKPOINT_VOLUME_FILES_H
#define CLOCHE_JAIL_CHECKPOINT_VOLUME_FILES_H

#include "base/base.h"

/* In the checkpoint `dir`, which is not sealed yet, for files on these mounts. An image that is not understood stays as
 * it is: -EBADMSG. */
int volume_files_loosen(int dir, const uint64_t *mounts, size_t n, struct err *err);

/* The same for the bytes of an image; for tests. */
int volume_files_rewrite(struct str image, const uint64_t *mounts, size_t n, struct buf *out);

#endif
