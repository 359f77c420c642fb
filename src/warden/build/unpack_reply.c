/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_reply.c - see unpack_reply.h. */
#include "warden/build/unpack_reply.h"

#include "wire/sizes.h"
static int hex_name(struct str s, char out[DIGEST_TEXT_SIZE])
{
  for (size_t i = 0; i < s.n; i++)
    if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
      return -EPROTO;
  return s.n == 64 ? str_copyz(s, out, 65) : -EPROTO;
}

static int line_of(struct str text, char *out, size_t room)
{
  size_t n = MIN(text.n, room - 1);
  for (size_t i = 0; i < n; i++)
    out[i] = (unsigned char)text.p[i] < 32 || text.p[i] == 127 ? ' ' : text.p[i];
  out[n] = 0;
  return 0;
}

int unpack_reply_read(struct str packet, struct unpack_reply *out)
{
  *out = (struct unpack_reply){0};
  if (!packet.n || packet.n > UNPACK_PACKET)
    return -EPROTO;
  struct str text = str_skip(packet, 1);
  out->what = (enum unpack_msg)packet.p[0];
  switch (out->what) {
  case UNPACK_WANT:
    return str_is(text, UNPACK_INDEX) ? str_copyz(text, out->name, sizeof(out->name)) : hex_name(text, out->name);
  case UNPACK_PART_IS:
    return hex_name(str_sub(text, 0, 64), out->name) ? -EPROTO : hex_name(str_skip(text, 64), out->diff);
  case UNPACK_IS:
    return hex_name(text, out->name);
  case UNPACK_NOTE:
  case UNPACK_FAILED:
    return line_of(text, out->line, sizeof(out->line));
  case UNPACK_RESULT:
    out->text = text;
    return 0;
  default:
    return -EPROTO;
  }
}
