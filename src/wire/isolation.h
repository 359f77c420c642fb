/* SPDX-License-Identifier: Apache-2.0 */
/* isolation.h - which tier of isolation somebody wishes for, as a word and as a number (docs/microvm.md). */
#ifndef CLOCHE_WIRE_ISOLATION_H
#define CLOCHE_WIRE_ISOLATION_H

#include "base/base.h"

enum isolation { ISOLATION_ANY = 0, ISOLATION_PROCESS, ISOLATION_MICROVM };

/* "default", "process" or "microvm"; -EINVAL: another word, *out is left alone. */
int isolation_read(struct str word, unsigned *out);
const char *isolation_name(uint64_t isolation); /* "default" for what is not known, too */

#endif
