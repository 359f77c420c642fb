/* SPDX-License-Identifier: Apache-2.0 */
/* wire_lookup.c - names of several teams, some of which have name servers that never answer. The name server is the
 * test's own, in a network namespace of its own. */
#include "unit.h"

#include "wire/lookup.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>

#define SHARE   4
#define TEAMS   20
#define STALLED 50 /* of each team */

static uv_loop_t loop;
static struct lookups lookups;
static uv_timer_t patience;
static atomic_uint silent; /* questions that got no answer */
static int server;

/* Answers A questions for good.test with 192.0.2.1 and others of that name with nothing; all else gets no answer. */
static void *serve(void *arg)
{
  for (;;) {
    uint8_t q[512];
    struct sockaddr_in from;
    socklen_t size = sizeof(from);
    ssize_t n = recvfrom(server, q, sizeof(q) - 16, 0, (struct sockaddr *)&from, &size);
    if (n < 12 + 11 + 4)
      continue;
    if (memcmp(q + 12, "\4good\4test", 11) != 0) {
      atomic_fetch_add(&silent, 1);
      continue;
    }
    bool a = q[12 + 11 + 1] == 1;
    n = 12 + 11 + 4; /* without what follows the question */
    q[2] = 0x81;
    q[3] = 0x80;
    q[7] = a;
    memset(q + 8, 0, 4);
    if (a)
      memcpy(q + n, "\xc0\x0c\0\1\0\1\0\0\0\1\0\4\xc0\0\2\1", 16);
    sendto(server, q, (size_t)(a ? n + 16 : n), 0, (struct sockaddr *)&from, size);
  }
  return NULL;
}

static void put(const char *path, const char *text)
{
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  assert_true(fd >= 0);
  assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
  close(fd);
}

static int setup(void **state)
{
  struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  pthread_t t;
  struct err err = ERR_NONE;
  if (geteuid() != 0)
    exit(77);
  assert_int_equal(unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
  assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
  assert_int_equal(mount("test", "/mnt", "tmpfs", 0, NULL), 0);
  put("/mnt/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:2\n");
  put("/mnt/nsswitch.conf", "hosts: files dns\n");
  assert_int_equal(mount("/mnt/resolv.conf", "/etc/resolv.conf", NULL, MS_BIND, NULL), 0);
  assert_int_equal(mount("/mnt/nsswitch.conf", "/etc/nsswitch.conf", NULL, MS_BIND, NULL), 0);
  server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_int_equal(ioctl(server, SIOCSIFFLAGS, &lo), 0);
  assert_int_equal(bind(server, (struct sockaddr *)&at, sizeof(at)), 0);
  assert_int_equal(pthread_create(&t, NULL, serve, NULL), 0);
  uv_loop_init(&loop);
  uv_timer_init(&loop, &patience);
  return lookups_open(&lookups, &loop, SHARE, &err);
}

struct wanted {
  struct lookup lookup; /* first */
  bool over;
  int status;
  uint32_t address;
};

static void done(struct lookup *l, int status, struct addrinfo *list)
{
  struct wanted *w = (struct wanted *)l;
  w->over = true;
  w->status = status;
  if (list)
    w->address = ((const struct sockaddr_in *)list->ai_addr)->sin_addr.s_addr;
  if (list)
    freeaddrinfo(list);
}

static void begin(struct wanted *w, const char *team, const char *name)
{
  *w = (struct wanted){.lookup = {.port = "80", .done = done}};
  snprintf(w->lookup.name, sizeof(w->lookup.name), "%s", name);
  lookup_start(&lookups, str_of(team), &w->lookup);
}

static void tick(uv_timer_t *t)
{
}

static void await(const struct wanted *w, int64_t most_us)
{
  int64_t end = clock_mono_us() + most_us;
  uv_timer_start(&patience, tick, 10, 10);
  while (!w->over && clock_mono_us() < end)
    uv_run(&loop, UV_RUN_ONCE);
  uv_timer_stop(&patience);
}

static void names_that_stall_delay_no_other_teams(void **state)
{
  static struct wanted stalled[TEAMS][STALLED], good, own;
  char team[16], name[64];
  int64_t began = clock_mono_us();
  for (int t = 0; t < TEAMS; t++)
    for (int i = 0; i < STALLED; i++) {
      snprintf(team, sizeof(team), "team%d", t);
      snprintf(name, sizeof(name), "n%d-%d.silent.test", t, i);
      begin(&stalled[t][i], team, name);
    }
  assert_int_equal(lookups.queue.running, TEAMS * SHARE); /* each its share and no more */
  begin(&own, "team0", "good.test");
  begin(&good, "another", "good.test");
  await(&good, 20000000);
  assert_true(good.over);
  assert_int_equal(good.status, 0);
  assert_int_equal(good.address, htonl(0xc0000201));
  assert_true(clock_mono_us() - began < 900000); /* before the first of the others gave up */
  assert_false(own.over);                        /* a team waits for its own */
  assert_true(lookup_cancel(&lookups, &own.lookup));
  assert_false(lookup_cancel(&lookups, &stalled[0][0].lookup)); /* it runs */
  for (int t = 0; t < TEAMS; t++)
    for (int i = SHARE; i < STALLED; i++)
      assert_true(lookup_cancel(&lookups, &stalled[t][i].lookup));
  for (int t = 0; t < TEAMS; t++)
    for (int i = 0; i < SHARE; i++) {
      await(&stalled[t][i], 30000000);
      assert_true(stalled[t][i].over);
      assert_int_not_equal(stalled[t][i].status, 0);
    }
  assert_true(atomic_load(&silent) >= TEAMS * SHARE);
  assert_int_equal(lookups.queue.running, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_that_stall_delay_no_other_teams),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
