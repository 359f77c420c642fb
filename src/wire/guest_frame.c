/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - frames on a stream; see guest.h. */
#include "wire/guest_frame.h"

#include <string.h>

int guest_frame_next(const struct guest_reader *r, struct guest_frame *head, struct str *body)
{
  static const uint8_t zero[3];
  if (r->bytes.n < sizeof(*head))
    return 0;
  memcpy(head, r->bytes.p, sizeof(*head));
  if (head->length > r->max || memcmp(head->zero, zero, sizeof(zero)) != 0)
    return -EPROTO;
  if (r->bytes.n - sizeof(*head) < head->length)
    return 0;
  *body = str_make(r->bytes.p + sizeof(*head), head->length);
  return 1;
}

void guest_frame_done(struct guest_reader *r, const struct guest_frame *head)
{
  size_t n = sizeof(*head) + head->length;
  memmove(r->bytes.p, r->bytes.p + n, r->bytes.n - n);
  r->bytes.n -= n;
}

ssize_t guest_read(struct guest_reader *r, int fd)
{
  char piece[65536];
  size_t room = sizeof(struct guest_frame) + r->max - r->bytes.n;
  ssize_t n;
  do
    n = read(fd, piece, MIN(sizeof(piece), room));
  while (n < 0 && errno == EINTR);
  if (n > 0)
    buf_add(&r->bytes, piece, (size_t)n);
  return n < 0 ? -errno : buf_failed(&r->bytes) ? -ENOBUFS : n;
}

int guest_write(int fd, enum guest_word word, const void *p, size_t n)
{
  struct guest_frame head = {.length = (uint32_t)n, .word = (uint8_t)word};
  int r = fd_write_all(fd, &head, sizeof(head));
  return r || !n ? r : fd_write_all(fd, p, n);
}
