/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the Connect protocol: five bytes of flags and length, then a message in JSON; the last one says how it
 * ended. */
#include <string.h>
#include "internal.h"

#define MESSAGE_MAX ((size_t)64 << 20)

int frame_next(const char *data, size_t len, size_t max, unsigned char *flags, const char **payload,
               size_t *payload_len, size_t *used)
{
  if (len < 5)
    return 0;
  const unsigned char *p = (const unsigned char *)data;
  size_t n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
  if (n > max || (p[0] & ~2u))
    return -1;
  if (len - 5 < n)
    return 0;
  *flags = p[0];
  *payload = data + 5;
  *payload_len = n;
  *used = 5 + n;
  return 1;
}

enum cloche_code frame_read(struct cloche_op *op,
                            enum cloche_code (*on_message)(struct cloche_op *op, const struct json *message))
{
  enum cloche_code code = CLOCHE_OK;
  size_t at = 0;
  while (code == CLOCHE_OK && !op->cancel_pending && !op->free_pending) {
    unsigned char flags;
    const char *payload;
    size_t n, used;
    int got = frame_next(op->in.data + at, op->in.len - at, MESSAGE_MAX, &flags, &payload, &n, &used);
    if (got < 0)
      code = op_fail(op, CLOCHE_EPROTO, "a message of the stream is malformed");
    if (got <= 0)
      break;
    at += used;
    struct arena a = {0};
    bool no_memory = false;
    struct json *j = json_read(&a, payload, n, &no_memory);
    if (!j)
      code = no_memory ? CLOCHE_ENOMEM : op_fail(op, CLOCHE_EPROTO, "a message of the stream is no JSON");
    else if (!(flags & 2))
      code = on_message(op, j);
    else if (json_get(j, "error"))
      code = rpc_error(op, json_get(j, "error"));
    else
      op->stream_ended = true;
    arena_free(&a);
  }
  buf_cut(&op->in, at);
  return code;
}

enum cloche_code frame_reply(struct cloche_op *op)
{
  if (!reply_good(op))
    return reply_failed(op);
  return op->stream_ended ? CLOCHE_OK : op_fail(op, CLOCHE_ENET, "the stream ended early");
}
