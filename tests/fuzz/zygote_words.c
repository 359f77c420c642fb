/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_words.c - packets of a zygote, whose libraries are a template author's: whatever comes is one of four answers,
 * and what is too long is none of them. */
#include "must.h"

#include "warden/warm/zygote_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct str packet = str_make((const char *)data, size);
  enum zygote_reply said = zygote_reply_read(packet);
  MUST(said <= ZYGOTE_SAYS_FAILED);
  MUST(said == ZYGOTE_SAYS_NOTHING || size < ZYGOTE_PACKET);
  MUST(said == ZYGOTE_SAYS_NOTHING || str_search(packet, STR("ev")) >= 0 || str_find(packet, '\\') >= 0);
  MUST(said == zygote_reply_read(packet));
  return 0;
}
