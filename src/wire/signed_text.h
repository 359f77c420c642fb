/* SPDX-License-Identifier: Apache-2.0 */
/* signed_text.h - which texts may be tried against the tokens of all boxes (src/warden/core/token_index.h). A client
 * chooses them and shows no key, so gates refuse others before they ask, and the warden before it looks. */
#ifndef CLOCHE_WIRE_SIGNED_TEXT_H
#define CLOCHE_WIRE_SIGNED_TEXT_H

#include "base/base.h"

#define SIGNED_TEXT_MAX   (4096 + 64 + 16) /* "path:operation:user:"; no longer path can be opened */
#define SIGNED_EXPIRY_MAX 21               /* ":" and the digits of a 64-bit number */

/* `expires` is empty, or ":" and digits. */
static inline bool signed_text_ok(struct str text, struct str expires)
{
  if (text.n > SIGNED_TEXT_MAX || expires.n > SIGNED_EXPIRY_MAX || expires.n == 1 || (expires.n && expires.p[0] != ':'))
    return false;
  for (size_t i = 1; i < expires.n; i++)
    if (expires.p[i] < '0' || expires.p[i] > '9')
      return false;
  return true;
}

#endif
