/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.h - files with holes. A sandbox says how long a file of a volume is, and the volume only how much of it is
 * there: who copies one byte by byte lets it fill another disk with zeros. */
#ifndef CLOCHE_CLI_SPARSE_H
#define CLOCHE_CLI_SPARSE_H

#include "base/base.h"

/* The next bytes of a file that are there, at or behind `at` and before `end`; both are `end` where there are none. */
void sparse_next(int fd, uint64_t at, uint64_t end, uint64_t *data, uint64_t *hole);
bool sparse_zeros(struct str piece);
/* All of a file into an empty one, by way of `piece`, which has n bytes. */
int sparse_copy(int from, int to, char *piece, size_t n);

#endif
