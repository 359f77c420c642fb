/* SPDX-License-Identifier: Apache-2.0 */
/* agent_reply.c - see agent_reply.h. */
#include "warden/core/agent_reply.h"

#include "wire/boot_packet.h"

void agent_text(struct str in, char out[AGENT_TEXT_MAX + 1])
{
  size_t n = MIN(in.n, (size_t)AGENT_TEXT_MAX);
  for (size_t i = 0; i < n; i++)
    out[i] = in.p[i] >= 0x20 && in.p[i] < 0x7f ? in.p[i] : '?';
  out[n] = 0;
}

int agent_reply_ready(struct str packet, struct err *err)
{
  char why[AGENT_TEXT_MAX + 1];
  if (packet.n && packet.p[0] == BOOT_READY)
    return 0;
  if (!packet.n || packet.p[0] != BOOT_FAILED)
    return err_set(err, -EIO,
                   packet.n ? "the agent answered what is no answer" : "the agent ended before it was ready");
  agent_text(str_skip(packet, 1), why);
  return err_set(err, -EIO, "the agent could not start: %s", why[0] ? why : "it gave no reason");
}

int agent_reply_exec(struct str packet, struct exec_event *word, struct str *bytes, struct err *err)
{
  if (packet.n < sizeof(*word) || packet.n > sizeof(*word) + EXEC_CHUNK)
    return err_set(err, -EPROTO, "the build's sandbox sent a message of %zu bytes; it has %zu to %zu", packet.n,
                   sizeof(*word), sizeof(*word) + EXEC_CHUNK);
  memcpy(word, packet.p, sizeof(*word));
  *bytes = str_skip(packet, sizeof(*word));
  return 0;
}

int agent_reply_status(struct str status, struct err *err)
{
  char text[AGENT_TEXT_MAX + 1];
  if (status.n == AGENT_STATUS_LEN && str_starts(status, STR("HTTP/1.")) && str_ends(status, STR(" 204")))
    return 0;
  agent_text(str_sub(status, 0, AGENT_STATUS_LEN), text);
  return err_set(err, -EIO, "the agent of the restored sandbox refused its identity: %s", text);
}
