/* SPDX-License-Identifier: Apache-2.0 */
/* machine_id.c - see machine_id.h. The id is random but for its last eight digits, which are a sum of the others: so it
 * is known again as one of ours in a copy of the box, whose agent may be another process than the one that wrote it. */
#include "agent/machine_id.h"

#include "base/base.h"
#include <fcntl.h>

#define MACHINE_ID "/etc/machine-id"
#define DIGITS     32
#define DRAWN      24

static void add_sum(char id[DIGITS + 1])
{
  uint8_t sum[SHA256_LEN];
  sha256_of(id, DRAWN, sum);
  hex_encode(sum, (DIGITS - DRAWN) / 2, id + DRAWN);
}

static bool is_ours(struct str text)
{
  char id[DIGITS + 1];
  if (text.n != DIGITS)
    return false;
  memcpy(id, text.p, DRAWN);
  add_sum(id);
  return !memcmp(id, text.p, DIGITS);
}

void machine_id_write(bool again)
{
  char text[DIGITS + 8], id[DIGITS + 2];
  uint8_t drawn[DRAWN / 2];
  cleanup_fd int fd = open(MACHINE_ID, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
  if (n < 0)
    return;
  struct str now = str_trim((struct str){text, (size_t)n});
  if (now.n && !str_is(now, "uninitialized") && !(again && is_ours(now)))
    return;
  random_bytes(drawn, sizeof(drawn));
  drawn[6] = (uint8_t)((drawn[6] & 0x0f) | 0x40); /* the form of a random UUID, as systemd's */
  drawn[8] = (uint8_t)((drawn[8] & 0x3f) | 0x80);
  hex_encode(drawn, sizeof(drawn), id);
  add_sum(id);
  id[DIGITS] = '\n';
  cleanup_fd int out = open(MACHINE_ID, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
  if (out < 0 || fd_write_all(out, id, DIGITS + 1) < 0)
    log_debug("%s: %s", MACHINE_ID, strerror(errno));
}
