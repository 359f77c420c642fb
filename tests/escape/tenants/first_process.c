/* SPDX-License-Identifier: Apache-2.0 */
/* first_process.c - root of a box against the agent, its first process: tracing it, reading and writing its memory,
 * copying its descriptors. Prints "NAME refused" or "NAME done" for each way. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void told(const char *name, long r)
{
  printf("%s %s (%s)\n", name, r >= 0 ? "done" : "refused", r >= 0 ? "-" : strerrorname_np(errno));
}

int main(void)
{
  char bytes[16];
  int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
  told("ptrace", ptrace(PTRACE_SEIZE, 1, NULL, NULL));
  long r = -1;
  for (int fd = 0; fd < 64 && r < 0; fd++)
    r = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
  told("pidfd_getfd", r);
  told("mem", open("/proc/1/mem", O_RDWR | O_CLOEXEC));
  told("environ", open("/proc/1/environ", O_RDONLY | O_CLOEXEC));
  told("fd", open("/proc/1/fd/0", O_RDONLY | O_CLOEXEC));
  told("exe", open("/proc/1/exe", O_RDONLY | O_CLOEXEC));
  struct iovec here = {bytes, sizeof(bytes)}, there = {(void *)0x400000, sizeof(bytes)};
  told("process_vm_readv", process_vm_readv(1, &here, 1, &there, 1, 0));
  return 0;
}
