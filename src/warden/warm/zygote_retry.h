/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_retry.h - when a zygote that ended is started again. One that ends again and again, by a fault or on purpose,
 * costs its loading and, where boxes of it were written to disk, its memory there (zygote_heap.h): it is waited for
 * twice as long each time, up to an hour. */
#ifndef CLOCHE_WARDEN_WARM_ZYGOTE_RETRY_H
#define CLOCHE_WARDEN_WARM_ZYGOTE_RETRY_H

#include "base/base.h"

#define ZYGOTE_RETRY_US     30000000ll
#define ZYGOTE_RETRY_MAX_US 3600000000ll /* also: one that lived so long has ended for the first time */

/* `deaths` counts those before this one. */
static inline int64_t zygote_retry_us(unsigned deaths)
{
  return deaths < 7 ? ZYGOTE_RETRY_US << deaths : ZYGOTE_RETRY_MAX_US;
}

#endif
