/* SPDX-License-Identifier: Apache-2.0 */
/* inflate.h - a gzip stream undone piece by piece. Members that follow each other count as one stream. */
#ifndef CLOCHE_AGENT_ENVD_INFLATE_H
#define CLOCHE_AGENT_ENVD_INFLATE_H

#include "base/base.h"

struct inflate;

struct inflate *inflate_new(void); /* NULL when memory is out */
void inflate_free(struct inflate *z);
/* Gives what comes out to fn in pieces; its negative answer stops and is handed on. -EBADMSG when the very header is
 * no gzip, -EIO when it breaks later. */
int inflate_feed(struct inflate *z, struct str in, int (*fn)(void *arg, struct str out), void *arg);
bool inflate_whole(const struct inflate *z); /* ended where a stream may end */

#endif
