/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c MIB - writes over the box's log ring what is most work to read: MIB of the shortest lines that are valid
 * entries of long ago, which no filter keeps, under a head that claims them all. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct head {
  char magic[8];
  uint64_t size, written;
};

int main(int argc, char **argv)
{
  size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 8) << 20, n = 0;
  static const char line[] = "{\"t\":1,\"a\":[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]}\n";
  struct head h = {.magic = "CLOCHLOG", .size = bytes, .written = bytes};
  char *ring = calloc(1, 64 + bytes);
  memcpy(ring, &h, sizeof(h));
  for (; n + sizeof(line) < bytes; n += sizeof(line) - 1)
    memcpy(ring + 64 + n, line, sizeof(line) - 1);
  memset(ring + 64 + n, '\n', bytes - n);
  unlink("/dev/shm/.cloche-log");
  int fd = open("/dev/shm/.cloche-log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  for (size_t at = 0; at < 64 + bytes;) {
    ssize_t k = write(fd, ring + at, 64 + bytes - at);
    if (k <= 0) {
      perror("write");
      return 1;
    }
    at += (size_t)k;
  }
  printf("%zu lines\n", n / (sizeof(line) - 1));
  return 0;
}
