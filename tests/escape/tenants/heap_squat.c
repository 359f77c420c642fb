/* SPDX-License-Identifier: Apache-2.0 */
/* heap_squat.c - maps files that are named like a zygote's shared memory, and stays.
 *
 *   heap_squat one NAME BYTES       a sparse file NAME of that size with a mark in each 2 MiB
 *   heap_squat many FOLDER COUNT MIB   COUNT processes, each with a hard link of one file of MIB MiB of its own
 *
 * Prints "mapped" when the mappings stand, and leaves the processes behind. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MARK "attacker-chosen memory"
#define STEP (2l << 20)

static void die(const char *what)
{
  perror(what);
  exit(1);
}

static void map_and_stay(const char *path, int told)
{
  int fd = open(path, O_RDONLY);
  if (fd < 0)
    die(path);
  char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (p == MAP_FAILED)
    die("mmap");
  close(fd);
  volatile char look = p[0];
  (void)look;
  if (write(told, "x", 1) != 1)
    die("write");
  close(told);
  for (int i = 0; i < 3; i++)
    close(i);
  for (;;)
    pause();
}

/* Returns when the child has mapped it. */
static void leave_behind(const char *path)
{
  int told[2];
  char got;
  if (pipe(told))
    die("pipe");
  if (fork() == 0) {
    setsid();
    close(told[0]);
    map_and_stay(path, told[1]);
  }
  close(told[1]);
  if (read(told[0], &got, 1) != 1)
    die("the child did not map it");
  close(told[0]);
}

static void one(const char *path, long bytes)
{
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || ftruncate(fd, bytes))
    die(path);
  for (long at = 0; at + 4096 <= bytes; at += STEP)
    if (pwrite(fd, MARK, sizeof(MARK), at) != sizeof(MARK))
      die("pwrite");
  close(fd);
  leave_behind(path);
}

static void many(const char *folder, int count, long mib)
{
  char first[200], path[200];
  char *bytes = malloc(1 << 20);
  snprintf(first, sizeof(first), "%s/content", folder);
  int fd = open(first, O_RDWR | O_CREAT | O_TRUNC, 0600);
  memset(bytes, 'x', 1 << 20);
  for (long i = 0; i < mib; i++)
    if (fd < 0 || write(fd, bytes, 1 << 20) != 1 << 20)
      die(first);
  close(fd);
  for (int i = 0; i < count; i++) {
    snprintf(path, sizeof(path), "%s/cloche-heap-%016x", folder, i);
    if (link(first, path))
      die(path);
    leave_behind(path);
  }
}

int main(int argc, char **argv)
{
  if (argc == 4 && !strcmp(argv[1], "one"))
    one(argv[2], atol(argv[3]));
  else if (argc == 5 && !strcmp(argv[1], "many"))
    many(argv[2], atoi(argv[3]), atol(argv[4]));
  else
    return 2;
  puts("mapped");
  return 0;
}
