/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text of any kind: read strictly and leniently, written again, and read back to the same bytes. */
#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(struct str text, int flags, bool ascii)
{
  cleanup_arena struct arena a = ARENA_INIT(64 << 20), again = ARENA_INIT(64 << 20);
  cleanup_buf struct buf first = BUF_INIT(64 << 20), second = BUF_INIT(64 << 20);
  struct json *v = json_read(&a, text, flags, NULL);
  if (!v)
    return;
  json_put(&first, v, ascii);
  struct json *w = json_read(&again, buf_str(&first), 0, NULL);
  if (!w)
    abort();
  json_put(&second, w, ascii);
  if (!str_eq(buf_str(&first), buf_str(&second)))
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct str text = {(const char *)data, size};
  round_trip(text, 0, false);
  round_trip(text, JSON_ALLOW_NAN | JSON_REPAIR_UTF8, true);
  return 0;
}
