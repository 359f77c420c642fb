/* SPDX-License-Identifier: Apache-2.0 */
/* attempts.c - a program that tries to get out of the box it is pid 1 of, one named way at a time.
 *
 * It takes "try NAME", "list" or "surface" on fd 3, makes the attempt in a process of its own (an attempt may leave it
 * broken) and answers "held REASON" or "escaped WHAT". Outside a box, "attempts NAME" tries one and prints the verdict:
 * the test uses it to show that harmless attempts do succeed outside of a box. As /qemu it stands in QEMU's place
 * beside warder (vm_escape_test.c): requests come as boot packets through the guest's port, facts with the
 * configuration. */
#include "attempts.h"
#include "wire/guest_frame.h"

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
static const struct attempt *const vm_groups[] = {mount_attempts, kernel_attempts, process_attempts, network_attempts,
                                                  vm_attempts};
static bool in_place_of_qemu;

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
    for (const struct attempt *a = (in_place_of_qemu ? vm_groups : groups)[g]; a->name; a++)
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

/* ---- the way to the test ---- */

static void give(const char *text, size_t n)
{
  struct guest_frame head = {.length = (uint32_t)n, .word = GUEST_ANSWER};
  if (in_place_of_qemu && write(GUEST_PORT_FD, &head, sizeof(head)) == (ssize_t)sizeof(head) &&
      write(GUEST_PORT_FD, text, n) == (ssize_t)n)
    return;
  if (in_place_of_qemu || send(3, text, n, MSG_NOSIGNAL) < 0)
    _exit(3);
}

static void take_whole(char *out, size_t n)
{
  for (ssize_t k; n > 0; out += k, n -= (size_t)k)
    if ((k = read(GUEST_PORT_FD, out, n)) <= 0)
      _exit(3);
}

static ssize_t take(char *out, size_t size)
{
  struct guest_frame head;
  if (!in_place_of_qemu)
    return recv(3, out, size, 0);
  take_whole((char *)&head, sizeof(head));
  if (head.length > size)
    _exit(3);
  take_whole(out, head.length);
  return (ssize_t)head.length;
}

static void take_config(void)
{
  static char text[65536];
  const struct guest_frame asks = {.word = GUEST_ASKS};
  if (write(GUEST_PORT_FD, &asks, sizeof(asks)) != (ssize_t)sizeof(asks))
    _exit(3);
  char *end = text + take(text, sizeof(text));
  for (char *at = text; at < end; at += strlen(at) + 1)
    putenv(at);
}

/* ---- requests ---- */

static void answer_try(const char *name)
{
  char text[256];
  const struct attempt *a = find(name);
  struct verdict v = a ? make(a) : escaped("unknown attempt");
  give(text, (size_t)snprintf(text, sizeof(text), "%s %s", v.held ? "held" : "escaped", v.why));
}

/* QEMU has the device, and no file of a box. */
static bool is_for_boxes_only(const char *name)
{
  return strcmp(name, "open_dev_kvm") == 0 || strcmp(name, "write_into_a_lower_layer") == 0;
}

/* One name of the list, or nothing behind its end: all of them do not fit a guest's answer. */
static void answer_name(size_t number)
{
  for (size_t g = 0; g < sizeof(vm_groups) / sizeof(vm_groups[0]); g++)
    for (const struct attempt *a = vm_groups[g]; a->name; a++)
      if (!is_for_boxes_only(a->name) && number-- == 0) {
        give(a->name, strlen(a->name));
        return;
      }
  give("", 1);
}

static void answer_list(void)
{
  static char text[16384];
  size_t n = 0;
  for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
    for (const struct attempt *a = groups[g]; a->name; a++)
      n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\n", a->name);
  give(text, n);
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
  in_place_of_qemu = strcmp(argv[0], "/qemu") == 0;
  if (in_place_of_qemu)
    take_config();
  learn();
  if (argc == 2) {
    const struct attempt *a = find(argv[1]);
    struct verdict v = a ? make(a) : escaped("unknown attempt");
    printf("%s %s\n", v.held ? "held" : "escaped", v.why);
    return 0;
  }
  for (ssize_t n; (n = take(line, sizeof(line) - 1)) > 0;) {
    line[n] = 0;
    if (strncmp(line, "try ", 4) == 0)
      answer_try(line + 4);
    else if (strncmp(line, "name ", 5) == 0)
      answer_name((size_t)strtoul(line + 5, NULL, 10));
    else if (strncmp(line, "say ", 4) == 0)
      vm_say(line + 4);
    else if (strcmp(line, "surface") == 0)
      answer_surface();
    else
      answer_list();
  }
  for (;;)
    pause();
}
