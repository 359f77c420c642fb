/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_reply.h - what an unpacker says to the warden (src/unpack/unpack.h). It reads what strangers wrote and may
 * have been taken over by it, so each packet is one of a few fixed shapes or the end of that unpacker. */
#ifndef CLOCHE_WARDEN_BUILD_UNPACK_REPLY_H
#define CLOCHE_WARDEN_BUILD_UNPACK_REPLY_H

#include "base/base.h"
#include "unpack/unpack.h"
#include "wire/sizes.h"

struct unpack_reply {
  enum unpack_msg what;
  char name[DIGEST_TEXT_SIZE]; /* WANT: UNPACK_INDEX or 64 hex digits; PART_IS, IS: 64 hex digits */
  char diff[DIGEST_TEXT_SIZE]; /* PART_IS */
  char line[600];              /* NOTE, FAILED: one line without control characters, cut off where it is longer */
  struct str text;             /* RESULT: in the packet */
};

/* -EPROTO: no such packet. */
int unpack_reply_read(struct str packet, struct unpack_reply *out);

#endif
