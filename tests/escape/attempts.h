/* SPDX-License-Identifier: Apache-2.0 */
/* attempts.h - what every file of attempts shares. See attempts.c. */
#ifndef CLOCHE_ATTEMPTS_H
#define CLOCHE_ATTEMPTS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Facts about the host that a clever box might know. */
struct facts {
  int pid;           /* a process of the host, of the test's own */
  int port;          /* it listens there on the host's loopback */
  int key;           /* of a System V segment it made */
  char file[128];    /* its file, absolute */
  char abstract[64]; /* its abstract unix socket, without the NUL */
};
extern struct facts facts;

/* An attempt answers with held(...) or escaped(...): the first is a refusal by the kernel for a reason that is a
 * refusal of permission, the second everything else, also a refusal for a reason that is none (a bad argument proves
 * nothing). */
struct verdict {
  bool held;
  char why[160];
};

struct attempt {
  const char *name;
  struct verdict (*run)(void);
};

extern const struct attempt mount_attempts[], kernel_attempts[], process_attempts[], network_attempts[],
    surface_attempts[], vm_attempts[];

struct verdict escaped(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
struct verdict held(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The verdict about a system call: negative with a refusal's errno is held. */
struct verdict refused(long result);
/* Opening for writing and writing, or opening for reading and reading a byte. */
struct verdict try_write(const char *path, const char *text);
struct verdict try_read(const char *path);

/* In QEMU's place: says something hostile to warder, by name. */
void vm_say(const char *what);
/* One line per finding, see tests/escape/surface.txt: "name PATH STATE", "write PATH -", "cost PATH HOW". Tells the
 * length. */
size_t surface(char *out, size_t size);

#define ATTEMPT(n)                                                                                                     \
  {                                                                                                                    \
#n, n                                                                                                              \
  }

#endif
