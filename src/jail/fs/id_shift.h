/* SPDX-License-Identifier: Apache-2.0 */
/* id_shift.h - for filesystems that can't map ids: files that carry the host's ids of one box's range. */
#ifndef CLOCHE_JAIL_FS_ID_SHIFT_H
#define CLOCHE_JAIL_FS_ID_SHIFT_H

#include "base/base.h"

/* A detached, read-only mount of the copy of `layer` for the range that starts at id_base, made below `shifted` by
 * whoever comes first. */
int id_shift_open(const char *shifted, const char *layer, uint32_t id_base, struct err *err);

/* Gives upper/ and work/ of a box's writable part, and what is in them, to the range. What has its ids already keeps
 * them. */
int id_shift_home(int home, uint32_t id_base);

/* Removes the copies whose layer is gone. */
void id_shift_sweep(const char *shifted);

#endif
