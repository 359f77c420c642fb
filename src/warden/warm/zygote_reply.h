/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_reply.h - what a zygote says to the warden (docs/kernel-protocol.md). It loads libraries of a template, which
 * a stranger may have built: whatever is none of these two messages is the end of that zygote. */
#ifndef CLOCHE_WARDEN_WARM_ZYGOTE_REPLY_H
#define CLOCHE_WARDEN_WARM_ZYGOTE_REPLY_H

#include "base/base.h"

#define ZYGOTE_PACKET 4096 /* bytes; a longer packet is refused */

enum zygote_reply { ZYGOTE_SAYS_NOTHING, ZYGOTE_SAYS_READY, ZYGOTE_SAYS_ENTERED, ZYGOTE_SAYS_FAILED };

/* One packet: {"ev":"ready"}, or {"ev":"entered","status":N} (FAILED where N is not 0 or missing), each with or without
 * a newline at its end. Anything else is ZYGOTE_SAYS_NOTHING. */
enum zygote_reply zygote_reply_read(struct str packet);

#endif
