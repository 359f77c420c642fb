/* SPDX-License-Identifier: Apache-2.0 */
/* boot_word.c - what an agent answers to its boot packet, and to the question who it is. Whatever it says, the box is
 * ready or there is a reason in printable ASCII that no log line and no JSON text can be broken with. */
#include "must.h"

#include "warden/core/agent_reply.h"

static void check_reason(int r, const struct err *err)
{
  MUST(r == 0 || (r == -EIO && err->msg[0]));
  for (const char *p = err->msg; *p; p++)
    MUST(*p >= 0x20 && *p < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  char text[AGENT_TEXT_MAX + 1];
  struct str in = str_make((const char *)data, size);
  struct err ready = ERR_NONE, status = ERR_NONE;
  int r = agent_reply_ready(in, &ready);
  check_reason(r, &ready);
  MUST((r == 0) == (size > 0 && data[0] == 'R'));
  check_reason(agent_reply_status(in, &status), &status);
  agent_text(in, text);
  MUST(strlen(text) == MIN(size, (size_t)AGENT_TEXT_MAX));
  return 0;
}
