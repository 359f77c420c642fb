/* SPDX-License-Identifier: Apache-2.0 */
/* box.c - makes houses and boxes for tests. */
#include "box.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <setjmp.h>
#include <cmocka.h>

static struct test_host *opened_host;

/* CLOCHE_TEST_ONLY names the one test to run: how the suite tries a failed one again. */
__attribute__((constructor)) static void choose_test(void)
{
  const char *only = getenv("CLOCHE_TEST_ONLY");
  if (only)
    cmocka_set_test_filter(only);
}

static bool nobody(const char *id, void *arg)
{
  (void)id, (void)arg;
  return false;
}

/* A test program that ends early still cleans up behind itself. */
static _Noreturn void give_up(const char *what, const struct err *err)
{
  fprintf(stderr, "box: %s: %s\n", what, err ? err->msg : strerrordesc_np(errno));
  if (opened_host) {
    jail_sweep(opened_host->instance, nobody, NULL, NULL);
    jail_instance_close(opened_host->instance);
    path_remove_tree(AT_FDCWD, opened_host->top);
  }
  abort();
}

static void put(const char *dir, const char *name, const char *text)
{
  char path[256];
  snprintf(path, sizeof(path), "%s/%s", dir, name);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || write(fd, text, strlen(text)) < 0)
    give_up(path, NULL);
  close(fd);
}

static void copy_program(const char *from, const char *to)
{
  struct stat st;
  int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
  if (in < 0 || out < 0 || fstat(in, &st))
    give_up(from, NULL);
  for (off_t at = 0; at < st.st_size;)
    if (sendfile(out, in, &at, (size_t)(st.st_size - at)) <= 0)
      give_up(to, NULL);
  close(in);
  close(out);
}

void test_host_open(struct test_host *h, const char *guest)
{
  static const char *const dirs[] = {"bin", "dev", "etc", "home", "proc", "sys", "tmp", "var", "srv"};
  struct err err = ERR_NONE;
  char path[256];
  snprintf(h->instance, sizeof(h->instance), "test%d", getpid());
  snprintf(h->top, sizeof(h->top), "/var/tmp/cloche-test-XXXXXX");
  if (!mkdtemp(h->top))
    give_up(h->top, NULL);
  opened_host = h;
  snprintf(h->base, sizeof(h->base), "%s/base", h->top);
  snprintf(h->extra, sizeof(h->extra), "%s/extra", h->top);
  if (mkdir(h->base, 0755) || mkdir(h->extra, 0755))
    give_up(h->base, NULL);
  for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
    snprintf(path, sizeof(path), "%s/%s", h->base, dirs[i]);
    if (mkdir(path, 0755))
      give_up(path, NULL);
  }
  snprintf(path, sizeof(path), "%s/tmp", h->base);
  chmod(path, 01777);
  put(h->base, "etc/passwd", "root:x:0:0:root:/root:/bin/guest\n");
  put(h->base, "etc/note", "from the template\n");
  snprintf(path, sizeof(path), "%s/cloche", h->extra);
  if (mkdir(path, 0755))
    give_up(path, NULL);
  snprintf(path, sizeof(path), "%s/cloche/guest", h->extra);
  copy_program(guest, path);
  if (jail_instance_open(h->instance, &err))
    give_up("opening the instance", &err);
}

void test_host_close(struct test_host *h)
{
  opened_host = NULL;
  jail_sweep(h->instance, nobody, NULL, NULL); /* boxes of tests that failed */
  jail_instance_close(h->instance);
  int r = path_remove_tree(AT_FDCWD, h->top);
  if (r) {
    errno = -r;
    give_up(h->top, NULL);
  }
}

struct jail_spec test_spec(struct test_host *h, struct box *b, const char *id)
{
  static const char *const argv[] = {"/cloche/guest", NULL};
  static const char *const env[] = {"PATH=/bin", "HOME=/root", NULL};
  static uint32_t next_base = 1000000000u;
  *b = (struct box){.test_host = h, .talk = -1, .jail = JAIL_NONE};
  snprintf(b->id, sizeof(b->id), "%s", id);
  snprintf(b->dir, sizeof(b->dir), "%s/box-%s", h->top, id);
  struct jail_spec spec = {
      .instance = h->instance,
      .id = b->id,
      .dir = b->dir,
      .id_base = __atomic_fetch_add(&next_base, JAIL_IDS, __ATOMIC_RELAXED),
      .hostname = "testbox",
      .argv = argv,
      .env = env,
      .boot_fd = -1,
  };
  static __thread const char *lowers[3];
  lowers[0] = h->extra;
  lowers[1] = h->base;
  lowers[2] = NULL;
  spec.lowers = lowers;
  return spec;
}

void box_start(struct box *b, struct jail_spec *spec)
{
  struct err err = ERR_NONE;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    give_up("socketpair", NULL);
  spec->boot_fd = pair[1];
  int r = jail_spawn(spec, &b->jail, &err);
  close(pair[1]);
  b->talk = pair[0];
  if (r)
    give_up("spawning a box", &err);
}

void box_open(struct test_host *h, struct box *b, const char *id)
{
  struct jail_spec spec = test_spec(h, b, id);
  spec.limits = (struct jail_limits){.cpus = 1, .memory = 64u << 20, .pids = 64, .open_files = 1024};
  box_start(b, &spec);
}

void box_close(struct box *b)
{
  struct err err = ERR_NONE;
  int status;
  if (jail_kill(b->test_host->instance, b->id, &b->jail, &err))
    give_up("killing a box", &err);
  if (jail_wait(&b->jail, 5000, &status))
    give_up("a killed box lives on", &err);
  jail_close(&b->jail);
  close(b->talk);
  if (jail_remove(b->test_host->instance, b->id, b->dir, &err))
    give_up("removing a box", &err);
}

const char *box_ask(struct box *b, const char *fmt, ...)
{
  static __thread char text[65536];
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(text, sizeof(text), fmt, ap);
  va_end(ap);
  struct pollfd p = {.fd = b->talk, .events = POLLIN};
  ssize_t k = send(b->talk, text, (size_t)n, MSG_NOSIGNAL);
  if (k == n && poll(&p, 1, 60000) == 1)
    k = recv(b->talk, text, sizeof(text) - 1, 0);
  else
    k = 0;
  text[k > 0 ? k : 0] = 0;
  return text;
}
