/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_reply.c - see zygote_reply.h. */
#include "warden/warm/zygote_reply.h"

enum zygote_reply zygote_reply_read(struct str packet)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 16);
  if (packet.n >= ZYGOTE_PACKET)
    return ZYGOTE_SAYS_NOTHING;
  struct json *m = json_read(&a, str_trim(packet), 0, NULL);
  struct str ev = json_text(json_get(m, "ev"), STR(""));
  int64_t status = 0;
  if (str_is(ev, "ready"))
    return ZYGOTE_SAYS_READY;
  if (!str_is(ev, "entered"))
    return ZYGOTE_SAYS_NOTHING;
  return json_int(json_get(m, "status"), &status) || status ? ZYGOTE_SAYS_FAILED : ZYGOTE_SAYS_ENTERED;
}
