/* SPDX-License-Identifier: Apache-2.0 */
/* sender_address.c - where events may be posted to. */
#include "unit.h"

#include "wire/receiver_address.h"
#include <arpa/inet.h>

static const char *ask(const struct receiver_rules *rules, const char *text, unsigned port, bool local)
{
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  struct sockaddr_in6 b = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  if (inet_pton(AF_INET, text, &a.sin_addr) == 1)
    return receiver_refused(rules, (struct sockaddr *)&a, local);
  assert_int_equal(inet_pton(AF_INET6, text, &b.sin6_addr), 1);
  return receiver_refused(rules, (struct sockaddr *)&b, local);
}

static void link_local_metadata_multicast_and_unspecified_are_never_reached(void **state)
{
  static const char *const never[] = {"169.254.169.254",
                                      "169.254.0.1",
                                      "0.0.0.0",
                                      "0.1.2.3",
                                      "224.0.0.1",
                                      "239.255.255.255",
                                      "255.255.255.255",
                                      "240.0.0.1",
                                      "100.100.100.200",
                                      "::",
                                      "fe80::1",
                                      "febf::1",
                                      "ff02::1",
                                      "fd00:ec2::254",
                                      "fd20:ce::254",
                                      "192.0.0.192",
                                      "::ffff:169.254.169.254",
                                      "64:ff9b::a9fe:a9fe",
                                      "2002:a9fe:a9fe::1",
                                      "::ffff:0.0.0.0",
                                      "168.63.129.16"};
  struct receiver_rules rules = {.private_allowed = true};
  for (size_t i = 0; i < ARRAY_LEN(never); i++)
    if (!ask(&rules, never[i], 80, false))
      fail_msg("%s may be reached", never[i]);
}

static void private_addresses_are_reached_only_where_allowed(void **state)
{
  static const char *const private[] = {
      "127.0.0.1",       "127.9.9.9",       "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1",
      "100.64.0.1",      "198.18.0.1",      "::1",      "fc00::1",    "fdff::1",        "::ffff:127.0.0.1",
      "::ffff:10.1.2.3", "64:ff9b::7f00:1", "fec0::1"};
  struct receiver_rules refuse = {0}, allow = {.private_allowed = true};
  for (size_t i = 0; i < ARRAY_LEN(private); i++) {
    if (!ask(&refuse, private[i], 80, false))
      fail_msg("%s may be reached", private[i]);
    if (ask(&allow, private[i], 80, false))
      fail_msg("%s: %s", private[i], ask(&allow, private[i], 80, false));
  }
  assert_non_null(strstr(ask(&refuse, "127.0.0.1", 80, false), "webhook_private_addresses"));
  assert_non_null(ask(&refuse, "8.8.8.8", 80, true)); /* the machine's own public address */
  assert_null(ask(&allow, "8.8.8.8", 80, true));
}

static void public_addresses_are_reached(void **state)
{
  static const char *const public[] = {"8.8.8.8",        "1.1.1.1",          "172.32.0.1",      "172.15.255.255",
                                       "100.128.0.1",    "192.167.0.1",      "223.255.255.255", "2606:4700::1111",
                                       "::ffff:8.8.8.8", "64:ff9b::808:808", "169.253.255.255", "11.0.0.1"};
  struct receiver_rules rules = {.boxes = 10u << 24 | 200u << 16};
  for (size_t i = 0; i < ARRAY_LEN(public); i++)
    if (ask(&rules, public[i], 443, false))
      fail_msg("%s: %s", public[i], ask(&rules, public[i], 443, false));
}

static void boxes_are_never_reached(void **state)
{
  struct receiver_rules rules = {.private_allowed = true, .boxes = 10u << 24 | 200u << 16};
  assert_non_null(ask(&rules, "10.200.0.1", 80, false));
  assert_non_null(ask(&rules, "10.200.255.255", 80, false));
  assert_non_null(ask(&rules, "::ffff:10.200.3.4", 80, false));
  assert_null(ask(&rules, "10.199.255.255", 80, false));
  assert_null(ask(&rules, "10.201.0.0", 80, false));
}

static void the_servers_own_listeners_are_never_reached(void **state)
{
  struct receiver_rules rules = {.private_allowed = true};
  receiver_own(&rules, STR("127.0.0.1:3000\n0.0.0.0:3443\nnonsense\n1.2.3.4:99999\n"));
  assert_int_equal(rules.nown, 2);
  assert_non_null(ask(&rules, "127.0.0.1", 3000, true));
  assert_non_null(ask(&rules, "::ffff:127.0.0.1", 3000, true));
  assert_null(ask(&rules, "127.0.0.1", 3001, true));
  assert_non_null(ask(&rules, "192.168.1.5", 3443, true));
  assert_null(ask(&rules, "192.168.1.5", 3443, false)); /* another machine's */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(link_local_metadata_multicast_and_unspecified_are_never_reached),
      cmocka_unit_test(private_addresses_are_reached_only_where_allowed),
      cmocka_unit_test(public_addresses_are_reached),
      cmocka_unit_test(boxes_are_never_reached),
      cmocka_unit_test(the_servers_own_listeners_are_never_reached),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
