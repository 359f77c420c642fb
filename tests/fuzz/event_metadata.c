/* SPDX-License-Identifier: Apache-2.0 */
/* event_metadata.c - a box's settings as a gate may have written them, read for the metadata of an event. What is taken
 * out of them is a part of them and an object of strings, so that the event it goes into is JSON. */
#include "must.h"

#include "warden/db/event.h"

#define ROOM ((size_t)4 << 20)

static void check_event(struct str metadata)
{
  cleanup_buf struct buf data = BUF_INIT(ROOM), out = BUF_INIT(ROOM);
  cleanup_arena struct arena a = ARENA_INIT((size_t)64 << 20);
  event_data_json(&data, &(struct event_data){.metadata = metadata, .network = true, .allow = metadata});
  struct event e = {.type = EVENT_UPDATED, .data = buf_z(&data)};
  event_body_json(&out, &e);
  const struct json *told = json_read(&a, buf_str(&out), 0, NULL);
  MUST(json_is(json_get(json_get(told, "event_data"), "sandbox_metadata"), JSON_OBJECT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct str config = {(const char *)data, size}, m = event_metadata(config);
  cleanup_arena struct arena a = ARENA_INIT((size_t)64 << 20);
  if (size > 65536 || !m.n)
    return 0;
  MUST(m.p > config.p && m.p + m.n <= config.p + config.n);
  const struct json *v = json_read(&a, m, 0, NULL);
  MUST(json_is(v, JSON_OBJECT) && v->kids);
  for (const struct json *k = v->kids; k; k = k->next)
    MUST(k->type == JSON_STRING);
  if (!memchr(m.p, 0, m.n))
    check_event(m);
  return 0;
}
