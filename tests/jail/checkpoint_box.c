/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_box.c - see checkpoint_box.h. */
#include "checkpoint_box.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <setjmp.h>
#include <cmocka.h>

#define PORT 7000

struct test_host test_host;
struct jail_criu criu = {.program = JAIL_CRIU_DEFAULT};

void rest_ms(long ms)
{
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* One request, one answer, over a connection into the box. */
const char *ask(struct box *b, const char *fmt, ...)
{
  static char text[32768];
  struct err err = ERR_NONE;
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(text, sizeof(text), fmt, ap);
  va_end(ap);
  int fd = -1;
  for (int i = 0; i < 200 && (fd = jail_connect(&b->jail, PORT, true, &err)) < 0; i++)
    rest_ms(10);
  if (fd < 0)
    return "no connection";
  struct pollfd p = {.fd = fd, .events = POLLIN};
  ssize_t k = write(fd, text, (size_t)n), got = 0;
  while (k > 0 && got < (ssize_t)sizeof(text) - 1 && poll(&p, 1, 10000) == 1) {
    k = read(fd, text + got, sizeof(text) - 1 - (size_t)got);
    got += k > 0 ? k : 0;
  }
  close(fd);
  text[got] = 0;
  return text;
}

void open_checkpoint_guest(struct box *b, struct jail_spec *spec, const char *id)
{
  *spec = test_spec(&test_host, b, id);
  spec->limits = (struct jail_limits){.cpus = 1, .memory = 256u << 20, .pids = 64, .open_files = 1024};
  struct err err = ERR_NONE;
  if (jail_spawn(spec, &b->jail, &err))
    fail_msg("%s", err.msg);
}

void end_box(struct box *b)
{
  int status;
  struct err err = ERR_NONE;
  assert_int_equal(jail_kill(test_host.instance, b->id, &b->jail, &err), 0);
  assert_int_equal(jail_wait(&b->jail, 5000, &status), 0);
  jail_close(&b->jail);
}

void close_box(struct box *b)
{
  struct err err = ERR_NONE;
  end_box(b);
  assert_int_equal(jail_remove(test_host.instance, b->id, b->dir, &err), 0);
}

const char *checkpoint_of(const struct box *b)
{
  static char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/checkpoint-%s", test_host.top, b->id);
  return path;
}

void dump(struct box *b, const struct jail_spec *spec)
{
  struct err err = ERR_NONE;
  if (jail_dump(&criu, spec, &b->jail, checkpoint_of(b), &err))
    fail_msg("%s", err.msg);
}

void restore(struct box *b, const struct jail_spec *spec, const char *checkpoint)
{
  struct err err = ERR_NONE;
  if (jail_restore(&criu, spec, checkpoint, &b->jail, &err))
    fail_msg("%s", err.msg);
}

void remove_checkpoint(struct box *b)
{
  struct err err = ERR_NONE;
  assert_int_equal(jail_checkpoint_remove(checkpoint_of(b), &err), 0);
}

/* To disk and back, as a pause and a resume. */
void sleep_and_wake(struct box *b, const struct jail_spec *spec)
{
  dump(b, spec);
  end_box(b);
  restore(b, spec, checkpoint_of(b));
  remove_checkpoint(b);
}

/* Where criu could not be made there is nothing to test but the freezer, which jail_test does. */
static void no_criu_on_this_machine(void **state)
{
  print_message("checkpoints are not tested: no criu at %s; scripts/criu says why\n", criu.program);
  skip();
}

int run_checkpoint_tests(int argc, char **argv, const struct CMUnitTest *tests, size_t n)
{
  const struct CMUnitTest nothing[] = {cmocka_unit_test(no_criu_on_this_machine)};
  if (argc != 2 || geteuid() != 0) {
    fprintf(stderr, "usage (as root): %s GUEST\n", argv[0]);
    return 2;
  }
  const char *own = getenv("CLOCHE_CRIU");
  if (own)
    criu.program = own;
  if (getenv("CLOCHE_TEST"))
    cmocka_set_test_filter(getenv("CLOCHE_TEST"));
  if (getenv("CLOCHE_LOG_DEBUG"))
    log_level_set(LOG_DEBUG);
  test_host_open(&test_host, argv[1]);
  bool able = access(criu.program, X_OK) == 0;
  int failed =
      able ? _cmocka_run_group_tests("tests", tests, n, NULL, NULL) : cmocka_run_group_tests(nothing, NULL, NULL);
  test_host_close(&test_host);
  return failed;
}
