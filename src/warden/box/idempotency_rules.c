/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency_rules.c - see idempotency_rules.h. */
#include "warden/box/idempotency_rules.h"

#include <errno.h>

enum key_verdict key_verdict(const struct key_facts *k, int64_t keep_us, int64_t wait_us)
{
  if (!k->reserved || k->age_us >= keep_us)
    return KEY_NEW;
  if (!k->same)
    return KEY_MISMATCH;
  if (k->answered)
    return KEY_REPLAY;
  if (k->live)
    return KEY_JOIN;
  if (k->own)
    return KEY_EXECUTE;
  return k->age_us >= 0 && k->age_us < wait_us ? KEY_BUSY : KEY_UNKNOWN;
}

bool key_keeps(int status)
{
  return status != -EAGAIN && status != -EDQUOT && status != -ENOBUFS && status != -ESHUTDOWN;
}
