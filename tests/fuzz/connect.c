/* SPDX-License-Identifier: Apache-2.0 */
/* connect.c - request bodies of the Connect protocol: envelopes, then messages of every schema in both codecs.
 *
 * Byte 0 of the input chooses the schema, bit 7 of it the codec. 'Envelopes' inputs (schema number past the end) are
 * cut into frames. A message that can be read must be written, read again and written the same. */
#include "must.h"

#include "agent/envd/messages.h"
#include "rpc/connect.h"

#include <stdio.h>

static const struct schema *const schemas[] = {
    &schema_empty,       &schema_processes,  &schema_start,          &schema_event,        &schema_select,
    &schema_update,      &schema_send_input, &schema_signal,         &schema_stream_input, &schema_path,
    &schema_list,        &schema_move,       &schema_entry_response, &schema_entries,      &schema_watch,
    &schema_watch_event, &schema_watcher,    &schema_changes,
};

/* What a codec wrote, it reads, and writes the same again. */
static void round_trip(enum rpc_codec codec, const struct schema *s, const void *msg)
{
  cleanup_arena struct arena a = ARENA_INIT((size_t)8 << 20);
  cleanup_buf struct buf once = BUF_INIT((size_t)8 << 20), twice = BUF_INIT((size_t)8 << 20);
  struct err err = ERR_NONE;
  void *again;
  rpc_encode(codec, s, msg, &once);
  MUST(!buf_failed(&once));
  int rc = rpc_decode(codec, s, buf_str(&once), &a, &again, &err);
  MUST(rc == 0);
  rpc_encode(codec, s, again, &twice);
  MUST(str_eq(buf_str(&once), buf_str(&twice)));
}

static void message(const struct schema *s, enum rpc_codec codec, struct str in)
{
  cleanup_arena struct arena a = ARENA_INIT((size_t)8 << 20);
  struct err err = ERR_NONE;
  void *msg;
  if (rpc_decode(codec, s, in, &a, &msg, &err) < 0) {
    MUST(err.msg[0]);
    return;
  }
  round_trip(RPC_PROTO, s, msg);
  /* A time beyond the years that RFC 3339 can name has no JSON form that can be read back. */
  if (s != &schema_entry_response && s != &schema_entries && s != &schema_watch_event && s != &schema_changes)
    round_trip(RPC_JSON, s, msg);
}

static void envelopes(struct str in)
{
  size_t total = 0;
  for (;;) {
    uint8_t flags;
    struct str payload;
    ssize_t n = frame_next(str_skip(in, total), &flags, &payload);
    if (n <= 0)
      break;
    MUST((size_t)n == payload.n + FRAME_HEAD);
    total += (size_t)n;
    MUST(total <= in.n);
    message(&schema_start, RPC_JSON, payload);
  }
  enum rpc_codec codec;
  uint64_t ms;
  rpc_content_type(in, true, &codec);
  rpc_timeout_parse(in, &ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size == 0)
    return 0;
  struct str rest = str_make(data + 1, size - 1);
  size_t which = data[0] & 0x7f;
  if (which < ARRAY_LEN(schemas))
    message(schemas[which], data[0] & 0x80 ? RPC_PROTO : RPC_JSON, rest);
  else
    envelopes(rest);
  return 0;
}
