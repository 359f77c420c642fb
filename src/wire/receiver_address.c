/* SPDX-License-Identifier: Apache-2.0 */
/* receiver_address.c - see receiver_address.h. */
#include "wire/receiver_address.h"

#include <arpa/inet.h>

#define NEVER   "is link-local, multicast, reserved or a metadata service's, which webhooks never reach"
#define BOXES   "is in the network of the sandboxes, which webhooks never reach"
#define OWN     "is this server's own API, which webhooks never reach"
#define PRIVATE "is private or this machine's own; the operator may allow such with webhook_private_addresses = allow"

struct range4 {
  uint32_t first;
  unsigned bits;
};

#define IP(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

static const struct range4 never4[] = {
    {IP(0, 0, 0, 0), 8},          /* "this host": the kernel takes it for loopback */
    {IP(169, 254, 0, 0), 16},     /* link-local; 169.254.169.254 is the metadata service of most clouds */
    {IP(100, 100, 100, 200), 32}, /* metadata service */
    {IP(168, 63, 129, 16), 32},   /* a cloud's host agent */
    {IP(192, 0, 0, 0), 24},       /* protocol assignments; 192.0.0.192 is a metadata service */
    {IP(224, 0, 0, 0), 3},        /* multicast and reserved, broadcast among them */
};

static const struct range4 private4[] = {
    {IP(10, 0, 0, 0), 8},    {IP(100, 64, 0, 0), 10},  {IP(127, 0, 0, 0), 8},
    {IP(172, 16, 0, 0), 12}, {IP(192, 168, 0, 0), 16}, {IP(198, 18, 0, 0), 15},
};

struct range6 {
  uint8_t first[16];
  unsigned bits;
};

static const struct range6 never6[] = {
    {{0}, 128},                                         /* unspecified */
    {{0xfe, 0x80}, 10},                                 /* link-local */
    {{0xff}, 8},                                        /* multicast */
    {{0x01, 0x00}, 64},                                 /* discard */
    {{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54}, 128}, /* metadata services */
    {{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54}, 128},
};

static const struct range6 private6[] = {
    {{[15] = 1}, 128},  /* loopback */
    {{0xfc}, 7},        /* unique local */
    {{0xfe, 0xc0}, 10}, /* site-local */
};

static bool in4(const struct range4 *list, size_t n, uint32_t address)
{
  for (size_t i = 0; i < n; i++)
    if (!((address ^ list[i].first) >> (32 - list[i].bits)))
      return true;
  return false;
}

static bool starts6(const uint8_t *address, const uint8_t *first, unsigned bits)
{
  unsigned whole = bits / 8, rest = bits % 8;
  return !memcmp(address, first, whole) && (!rest || !((address[whole] ^ first[whole]) >> (8 - rest)));
}

static bool in6(const struct range6 *list, size_t n, const uint8_t *address)
{
  for (size_t i = 0; i < n; i++)
    if (starts6(address, list[i].first, list[i].bits))
      return true;
  return false;
}

static uint32_t word_at(const uint8_t *p)
{
  return IP(p[0], p[1], p[2], p[3]);
}

/* Mapped, compatible, NAT64 and 6to4 addresses lead to an IPv4 one. */
static bool embedded4(const uint8_t *a, uint32_t *out)
{
  static const struct range6 mapped = {{[10] = 0xff, 0xff}, 96}, compatible = {{0}, 96},
                             nat64 = {{0x00, 0x64, 0xff, 0x9b}, 96}, sixtofour = {{0x20, 0x02}, 16};
  bool tail = in6(&mapped, 1, a) || in6(&nat64, 1, a) || (in6(&compatible, 1, a) && word_at(a + 12) > 1);
  if (!tail && !in6(&sixtofour, 1, a))
    return false;
  *out = word_at(tail ? a + 12 : a + 2);
  return true;
}

static bool is_own(const struct receiver_rules *rules, uint32_t address, uint16_t port, bool local)
{
  for (size_t i = 0; i < rules->nown; i++) {
    uint32_t listens = ntohl(rules->own[i].sin_addr.s_addr);
    if (rules->own[i].sin_port == port && (listens == address || (listens == INADDR_ANY && local)))
      return true;
  }
  return false;
}

static const char *refused4(const struct receiver_rules *rules, uint32_t address, uint16_t port, bool local)
{
  if (in4(never4, ARRAY_LEN(never4), address))
    return NEVER;
  if (rules->boxes && !((address ^ rules->boxes) >> 16))
    return BOXES;
  if (is_own(rules, address, port, local))
    return OWN;
  return !rules->private_allowed && (local || in4(private4, ARRAY_LEN(private4), address)) ? PRIVATE : NULL;
}

const char *receiver_refused(const struct receiver_rules *rules, const struct sockaddr *address, bool local)
{
  if (address->sa_family == AF_INET) {
    struct sockaddr_in a;
    memcpy(&a, address, sizeof(a));
    return refused4(rules, ntohl(a.sin_addr.s_addr), a.sin_port, local);
  }
  if (address->sa_family != AF_INET6)
    return NEVER;
  struct sockaddr_in6 a;
  uint32_t inner;
  memcpy(&a, address, sizeof(a));
  if (embedded4(a.sin6_addr.s6_addr, &inner))
    return refused4(rules, inner, a.sin6_port, local);
  if (in6(never6, ARRAY_LEN(never6), a.sin6_addr.s6_addr))
    return NEVER;
  return !rules->private_allowed && (local || in6(private6, ARRAY_LEN(private6), a.sin6_addr.s6_addr)) ? PRIVATE : NULL;
}

void receiver_own(struct receiver_rules *rules, struct str lines)
{
  struct str line;
  rules->nown = 0;
  while (lines.n && rules->nown < OWN_LISTENERS) {
    struct sockaddr_in a = {.sin_family = AF_INET};
    char host[INET_ADDRSTRLEN];
    uint64_t port;
    str_cut(lines, '\n', &line, &lines);
    ptrdiff_t colon = str_rfind(line, ':');
    if (colon <= 0 || str_copyz(str_sub(line, 0, (size_t)colon), host, sizeof(host)) ||
        inet_pton(AF_INET, host, &a.sin_addr) != 1 || str_u64(str_skip(line, (size_t)colon + 1), &port) ||
        port > UINT16_MAX)
      continue;
    a.sin_port = htons((uint16_t)port);
    rules->own[rules->nown++] = a;
  }
}
