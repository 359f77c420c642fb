/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_words.c - packets of an unpacker that an image took over: names are digests or the one fixed word, lines are
 * bounded and have no control characters, a result is part of the packet. */
#include "must.h"

#include "warden/build/unpack_reply.h"

static bool hex(const char *name)
{
  return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
}

static bool calm(const char *line)
{
  for (; *line; line++)
    if ((unsigned char)*line < 32 || *line == 127)
      return false;
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct str packet = str_make((const char *)data, size);
  struct unpack_reply r;
  int code = unpack_reply_read(packet, &r);
  MUST(code == 0 || code == -EPROTO);
  MUST(memchr(r.name, 0, sizeof(r.name)) && memchr(r.diff, 0, sizeof(r.diff)) && memchr(r.line, 0, sizeof(r.line)));
  if (code)
    return 0;
  MUST(size && size <= UNPACK_PACKET && r.what == (enum unpack_msg)packet.p[0]);
  switch (r.what) {
  case UNPACK_WANT:
    MUST(hex(r.name) || !strcmp(r.name, UNPACK_INDEX));
    break;
  case UNPACK_PART_IS:
    MUST(hex(r.name) && hex(r.diff));
    break;
  case UNPACK_IS:
    MUST(hex(r.name));
    break;
  case UNPACK_NOTE:
  case UNPACK_FAILED:
    MUST(calm(r.line));
    break;
  case UNPACK_RESULT:
    MUST(r.text.p == packet.p + 1 && r.text.n == size - 1);
    break;
  default:
    MUST(false);
  }
  return 0;
}
