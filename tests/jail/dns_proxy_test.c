/* SPDX-License-Identifier: Apache-2.0 */
/* dns_proxy_test.c - the name server of boxes under one that asks for as much as it can: nobody else's names wait for
 * it.
 *
 * In a network namespace of its own: two "boxes" are two addresses of the loopback, the resolver answers everything
 * with as many new addresses as an answer holds, and opening them takes OPEN_MS, as a call to nft may. */
#include "jail/net/dns_proxy.h"
#include "jail/net/rtnl.h"
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

#define IP(a, b, c, d) ((uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d))
#define POOL           IP(10, 77, 0, 0)
#define OPEN_MS        40
#define PER_ANSWER     32
#define FIRST_SILENT   10u
#define SILENT         300u
#define SILENT_EACH    1u

static struct jail_net_config config = {.instance = "names", .pool = POOL};
static char dir[] = "/tmp/cloche-names.XXXXXX";
static pid_t keeper;
static struct {
  atomic_uint calls, addresses;
  atomic_bool refuse; /* the first slot's */
} * seen;

static void opened(uint32_t slot, uint32_t count)
{
  atomic_fetch_add(&seen->addresses, count);
}

#ifdef DNS_OPENING_MAX
static int open_slowly(const struct jail_net_config *c, const struct dns_opening *list, size_t n)
{
  atomic_fetch_add(&seen->calls, 1);
  poll(NULL, 0, OPEN_MS);
  for (size_t i = 0; i < n; i++)
    if (list[i].slot == 0 && atomic_load(&seen->refuse))
      return -EIO;
  for (size_t i = 0; i < n; i++)
    opened(list[i].slot, list[i].count);
  return 0;
}
#else /* one call per address, as it was */
static int open_slowly(const struct jail_net_config *c, uint32_t slot, uint32_t address, unsigned seconds)
{
  atomic_fetch_add(&seen->calls, 1);
  poll(NULL, 0, OPEN_MS);
  if (slot == 0 && atomic_load(&seen->refuse))
    return -EIO;
  opened(slot, 1);
  return 0;
}
#endif

/* ---- the resolver ---- */

static size_t put_answers(uint8_t *m, size_t n)
{
  static uint32_t next = IP(198, 18, 0, 0);
  m[2] |= 0x80;
  m[6] = 0;
  m[7] = PER_ANSWER;
  for (int i = 0; i < PER_ANSWER; i++) {
    uint32_t address = htonl(next++);
    static const uint8_t head[12] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4};
    memcpy(m + n, head, sizeof(head));
    memcpy(m + n + sizeof(head), &address, 4);
    n += sizeof(head) + 4;
  }
  return n;
}

static void *resolver_run(void *arg)
{
  int fd = *(int *)arg;
  uint8_t m[4096];
  struct sockaddr_in from;
  for (;;) {
    socklen_t len = sizeof(from);
    ssize_t n = recvfrom(fd, m, 512, 0, (struct sockaddr *)&from, &len);
    if (n > 12)
      sendto(fd, m, put_answers(m, (size_t)n), 0, (struct sockaddr *)&from, len);
  }
  return NULL;
}

/* ---- boxes ---- */

static int bound(uint32_t address, unsigned port)
{
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(address)};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
  return fd;
}

static void ask(int fd, unsigned number)
{
  struct sockaddr_in to = {
      .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(jail_net_gateway(&config))};
  uint8_t m[64] = {(uint8_t)(number >> 8), (uint8_t)number, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4};
  snprintf((char *)m + 13, 5, "%04x", number & 0xffff);
  static const uint8_t tail[] = {4, 't', 'e', 's', 't', 0, 0, 1, 0, 1};
  memcpy(m + 17, tail, sizeof(tail));
  assert_true(sendto(fd, m, 17 + sizeof(tail), 0, (struct sockaddr *)&to, sizeof(to)) > 0);
}

/* How long until its answer came, in ms; -1 when none did. */
static int64_t answered(int fd, int most_ms)
{
  uint8_t m[4096];
  int64_t began = clock_mono_us();
  struct pollfd p = {.fd = fd, .events = POLLIN};
  if (poll(&p, 1, most_ms) != 1)
    return -1;
  assert_true(recv(fd, m, sizeof(m), 0) > 12);
  return (clock_mono_us() - began) / 1000;
}

/* ---- tests ---- */

static void an_answer_comes_when_its_addresses_are_open(void **state)
{
  cleanup_fd int b = bound(POOL + 17, 0);
  unsigned before = atomic_load(&seen->addresses);
  ask(b, 1);
  assert_in_range(answered(b, 5000), OPEN_MS - 5, 2000);
  assert_int_equal(atomic_load(&seen->addresses) - before, PER_ANSWER);
}

static void a_flood_of_new_addresses_delays_no_other_box(void **state)
{
  cleanup_fd int a = bound(POOL + 16, 0), b = bound(POOL + 17, 0);
  int64_t worst = 0;
  for (unsigned i = 0; i < 64; i++)
    ask(a, 100 + i);
  for (unsigned i = 0; i < 5; i++) {
    ask(b, 10 + i);
    int64_t ms = answered(b, 10000);
    assert_true(ms >= 0);
    worst = MAX(worst, ms);
    for (unsigned k = 0; k < 8; k++)
      ask(a, 200 + 8 * i + k);
  }
  print_message("slowest answer beside a flood: %lld ms\n", (long long)worst);
  assert_in_range(worst, 0, 1000);
}

static void what_the_kernel_refuses_for_one_box_is_opened_for_another(void **state)
{
  cleanup_fd int a = bound(POOL + 16, 0), b = bound(POOL + 17, 0);
  atomic_store(&seen->refuse, true);
  for (unsigned i = 0; i < 8; i++)
    ask(a, 300 + i);
  ask(b, 20);
  int64_t ms = answered(b, 10000);
  atomic_store(&seen->refuse, false);
  assert_in_range(ms, 0, 1500);
}

static void a_box_opens_a_bounded_number_of_addresses(void **state)
{
  cleanup_fd int a = bound(POOL + 18, 0);
  unsigned before = atomic_load(&seen->addresses), got = 0;
  for (unsigned i = 0; i < 60; i++) {
    ask(a, 400 + i);
    got += answered(a, 300) >= 0;
  }
  assert_in_range(got, 20, 40); /* 1024 addresses, and few more by the second */
  assert_true(atomic_load(&seen->addresses) - before < 1400);
}

/* As many boxes as there once were places, each with one question for a name server of its own that says nothing. */
static void silent_name_servers_of_many_boxes_keep_no_place_of_others(void **state)
{
  struct err err = ERR_NONE;
  cleanup_fd int b = bound(POOL + 17, 0);
  static int silent[SILENT];
  for (uint32_t i = 0; i < SILENT; i++) {
    assert_int_equal(dns_proxy_set(dir, FIRST_SILENT + i, DNS_PROXY_SERVERS "10.88.0.1 10.88.0.2\n", &err), 0);
    silent[i] = bound(POOL + 16 + FIRST_SILENT + i, 0);
    for (unsigned k = 0; k < SILENT_EACH; k++)
      ask(silent[i], 500 + k);
  }
  for (unsigned i = 0; i < 3; i++) {
    ask(b, 30 + i);
    assert_in_range(answered(b, 4000), 0, 1500);
  }
  for (uint32_t i = 0; i < SILENT; i++) {
    assert_int_equal(answered(silent[i], 0), -1);
    close(silent[i]);
    dns_proxy_set(dir, FIRST_SILENT + i, NULL, NULL);
  }
}

static int open_all(void **state)
{
  static int resolver;
  pthread_t thread;
  struct err err = ERR_NONE;
  seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (unshare(CLONE_NEWNET) || !mkdtemp(dir) || chmod(dir, 0755))
    return -1;
  cleanup_fd int sock = rtnl_open();
  int lo = rtnl_index(sock, "lo");
  if (rtnl_up(sock, lo, false) || rtnl_address(sock, lo, jail_net_gateway(&config), 32))
    return -1;
  for (uint32_t slot = 0; slot < 3; slot++)
    if (rtnl_address(sock, lo, POOL + 16 + slot, 32) || dns_proxy_set(dir, slot, "*\n", &err))
      return -1;
  for (uint32_t i = 0; i < SILENT; i++)
    if (rtnl_address(sock, lo, POOL + 16 + FIRST_SILENT + i, 32))
      return -1;
  if (rtnl_route(sock, lo, IP(10, 88, 0, 0), 16, 0)) /* what goes there is lost */
    return -1;
  config.dns_lists = dir;
  keeper = dns_proxy_start(&config, IP(127, 0, 0, 1), open_slowly, &err);
  resolver = bound(IP(127, 0, 0, 1), 53);
  return keeper <= 0 || pthread_create(&thread, NULL, resolver_run, &resolver);
}

static int close_all(void **state)
{
  dns_proxy_stop(keeper);
  for (uint32_t slot = 0; slot < 3; slot++)
    dns_proxy_set(dir, slot, NULL, NULL);
  return rmdir(dir);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_answer_comes_when_its_addresses_are_open),
      cmocka_unit_test(a_flood_of_new_addresses_delays_no_other_box),
      cmocka_unit_test(what_the_kernel_refuses_for_one_box_is_opened_for_another),
      cmocka_unit_test(silent_name_servers_of_many_boxes_keep_no_place_of_others),
      cmocka_unit_test(a_box_opens_a_bounded_number_of_addresses),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
