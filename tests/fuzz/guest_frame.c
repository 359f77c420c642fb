/* SPDX-License-Identifier: Apache-2.0 */
/* guest_frame.c - frames that a guest sends over its port, in pieces of any size. No frame is longer than the reader's
 * bound, no byte is read twice, and what comes in pieces is what comes at once. */
#include "must.h"

#include "wire/guest_frame.h"

#define MOST 1024

/* Feeds the bytes in pieces; the sum of all frames that came out. */
static uint64_t feed(const uint8_t *data, size_t size, size_t piece, int *end)
{
  struct guest_reader r = {.bytes = BUF_INIT(sizeof(struct guest_frame) + MOST), .max = MOST};
  struct guest_frame head;
  struct str body;
  uint64_t sum = 0;
  for (*end = 0; !*end && size;) {
    size_t room = MIN(sizeof(head) + MOST - r.bytes.n, size), n = MIN(piece, room);
    MUST(n > 0); /* a full reader has a frame or an error */
    MUST(buf_add(&r.bytes, data, n) == 0);
    data += n, size -= n;
    while ((*end = guest_frame_next(&r, &head, &body)) > 0) {
      MUST(body.n == head.length && body.n <= MOST);
      sum = sum * 31 + head.word;
      for (size_t i = 0; i < body.n; i++)
        sum = sum * 31 + (uint8_t)body.p[i];
      guest_frame_done(&r, &head);
    }
  }
  buf_free(&r.bytes);
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  int whole, parts;
  if (!size)
    return 0;
  size_t piece = 1 + data[0] % 97;
  uint64_t once = feed(data + 1, size - 1, SIZE_MAX, &whole), bitwise = feed(data + 1, size - 1, piece, &parts);
  MUST(whole == parts && once == bitwise);
  return 0;
}
