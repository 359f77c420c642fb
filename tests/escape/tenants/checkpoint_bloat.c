/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_bloat.c - one piece of memory, shared by many forks: it is written into a checkpoint once for each.
 *
 *   checkpoint_bloat MIB FORKS
 *
 * Prints "forked" when all stand, and leaves them behind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  size_t bytes = (size_t)(argc > 1 ? atol(argv[1]) : 64) << 20;
  int forks = argc > 2 ? atoi(argv[2]) : 16;
  char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return 1;
  for (size_t i = 0; i < bytes; i += 8)
    *(size_t *)(p + i) = i * 2654435761u;
  for (int i = 0; i < forks; i++) {
    pid_t child = fork();
    if (child < 0)
      return 1;
    if (child)
      continue;
    setsid();
    for (int fd = 0; fd < 3; fd++)
      close(fd);
    for (;;)
      pause();
  }
  puts("forked");
  return 0;
}
