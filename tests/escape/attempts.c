/* SPDX-License-Identifier: Apache-2.0 */
/* attempts.c - a program that tries to get out of the box it is pid 1 of, one named way at a time.
 *
 * It takes "try NAME", "list" or "surface" on fd 3, makes the attempt in a process of its own (an attempt may leave it
 * broken) and answers "held REASON" or "escaped WHAT". Outside a box, "attempts NAME" tries one and prints the verdict:
 * the test uses it to show that harmless attempts do succeed outside of a box. */
#include "attempts.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct facts facts;

static const struct attempt *const groups[] = {mount_attempts, kernel_attempts, process_attempts, network_attempts,
                                               surface_attempts};

struct verdict escaped(const char *fmt, ...)
{
  struct verdict v = {.held = false};
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(v.why, sizeof(v.why), fmt, ap);
  va_end(ap);
  return v;
}

struct verdict held(const char *fmt, ...)
{
  struct verdict v = {.held = true};
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(v.why, sizeof(v.why), fmt, ap);
  va_end(ap);
  return v;
}

static bool is_refusal(int code)
{
  static const int namespaces[] = {EPERM, EACCES, EROFS,  ENOSYS,       EAFNOSUPPORT, EPROTONOSUPPORT, ENOENT,
                                   ESRCH, ENXIO,  ENODEV, ECONNREFUSED, ENETUNREACH,  ETXTBSY};
  for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++)
    if (namespaces[i] == code)
      return true;
  return false;
}

struct verdict refused(long result)
{
  int code = errno;
  if (result >= 0)
    return escaped("the call returned %ld", result);
  return is_refusal(code) ? held("%s", strerrorname_np(code)) : escaped("%s is not a refusal", strerrorname_np(code));
}

struct verdict try_write(const char *path, const char *text)
{
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return refused(-1);
  ssize_t n = write(fd, text, strlen(text));
  return n < 0 ? refused(-1) : escaped("wrote %zd bytes to %s", n, path);
}

struct verdict try_read(const char *path)
{
  char byte;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return refused(-1);
  ssize_t n = read(fd, &byte, 1);
  if (n == 0)
    return held("covered: nothing in it");
  return n < 0 ? refused(-1) : escaped("read from %s", path);
}

static const struct attempt *find(const char *name)
{
  for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
    for (const struct attempt *a = groups[g]; a->name; a++)
      if (strcmp(a->name, name) == 0)
        return a;
  return NULL;
}

/* The verdict comes back in shared memory; an attempt that dies without one was stopped by force. */
static struct verdict make(const struct attempt *a)
{
  struct verdict *v = mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), out;
  int status = 0;
  if (v == MAP_FAILED)
    return escaped("no memory for a verdict");
  *v = escaped("no verdict");
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    *v = a->run();
    _exit(0);
  }
  if (pid < 0 || waitpid(pid, &status, 0) < 0)
    return escaped("no process for the attempt");
  out = *v;
  munmap(v, sizeof(*v));
  return out;
}

static void answer_try(const char *name)
{
  char text[256];
  const struct attempt *a = find(name);
  struct verdict v = a ? make(a) : escaped("unknown attempt");
  int n = snprintf(text, sizeof(text), "%s %s", v.held ? "held" : "escaped", v.why);
  if (send(3, text, (size_t)n, MSG_NOSIGNAL) < 0)
    _exit(3);
}

static void answer_list(void)
{
  static char text[16384];
  size_t n = 0;
  for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
    for (const struct attempt *a = groups[g]; a->name; a++)
      n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\n", a->name);
  if (send(3, text, n, MSG_NOSIGNAL) < 0)
    _exit(3);
}

/* In a process of its own, whose /proc/self is an ordinary one. */
static void answer_surface(void)
{
  static char text[65000];
  pid_t pid = fork();
  if (pid == 0) {
    size_t n = surface(text, sizeof(text));
    _exit(send(3, text, n, MSG_NOSIGNAL) < 0);
  }
  if (pid < 0 || waitpid(pid, NULL, 0) < 0)
    _exit(3);
}

static void learn(void)
{
  const char *text[5] = {getenv("HOST_PID"), getenv("HOST_PORT"), getenv("HOST_KEY"), getenv("HOST_FILE"),
                         getenv("HOST_ABSTRACT")};
  facts.pid = text[0] ? (int)strtol(text[0], NULL, 10) : 0;
  facts.port = text[1] ? (int)strtol(text[1], NULL, 10) : 0;
  facts.key = text[2] ? (int)strtol(text[2], NULL, 10) : 0;
  snprintf(facts.file, sizeof(facts.file), "%s", text[3] ? text[3] : "");
  snprintf(facts.abstract, sizeof(facts.abstract), "%s", text[4] ? text[4] : "");
}

int main(int argc, char **argv)
{
  static char line[256];
  learn();
  if (argc == 2) {
    const struct attempt *a = find(argv[1]);
    struct verdict v = a ? make(a) : escaped("unknown attempt");
    printf("%s %s\n", v.held ? "held" : "escaped", v.why);
    return 0;
  }
  for (ssize_t n; (n = recv(3, line, sizeof(line) - 1, 0)) > 0;) {
    line[n] = 0;
    if (strncmp(line, "try ", 4) == 0)
      answer_try(line + 4);
    else if (strcmp(line, "surface") == 0)
      answer_surface();
    else
      answer_list();
  }
  for (;;)
    pause();
}
