/* SPDX-License-Identifier: Apache-2.0 */
/* compress.h - memory of a checkpoint, made smaller by zstd while its box sleeps.
 *
 * Only files of memory are packed (pages-*); NAME becomes NAME.zst, and the manifest keeps size and checksum of what
 * was packed, so that the way there and back is checked as a whole. The manifest changes when all packed files are on
 * stable storage, and what was packed goes after that: a crash finds one whole checkpoint or the other. */
#ifndef CLOCHE_JAIL_CHECKPOINT_COMPRESS_H
#define CLOCHE_JAIL_CHECKPOINT_COMPRESS_H

#include "jail/checkpoint/manifest.h"

/* Puts packed memory back beside its packed form, checked, for a restore to read; it is not written out. */
int decompress_all(int dir, const struct manifest *m, struct err *err);
/* The same without keeping it: 0, or -EBADMSG with the file named. */
int compressed_check(int dir, const struct manifest *m, struct err *err);
/* Removes what decompress_all put back. */
void compressed_restore(int dir, const struct manifest *m);
bool compressed_any(const struct manifest *m);

#endif
