/* SPDX-License-Identifier: Apache-2.0 */
/* never.h - addresses that nothing of a box ever reaches, whatever its lists say: this host, private and carrier
 * ranges, link-local with the metadata addresses, benchmark, multicast, reserved. For the firewall, which has the same
 * as a set, and for the egress gateway. */
#ifndef CLOCHE_JAIL_NET_NEVER_H
#define CLOCHE_JAIL_NET_NEVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER_REACHED                                                                                                  \
  "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.0.0.0/24, 192.168.0.0/16, "   \
  "198.18.0.0/15, 224.0.0.0/4, 240.0.0.0/4"

static inline bool address_in(uint32_t address, uint32_t prefix, unsigned bits)
{
  return bits == 0 || (address ^ prefix) >> (32 - bits) == 0;
}

/* Host byte order. */
static inline bool never_reached(uint32_t address)
{
  static const struct {
    uint32_t address;
    unsigned bits;
  } never[] = {
      {0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8}, {0xa9fe0000, 16}, {0xac100000, 12},
      {0xc0000000, 24}, {0xc0a80000, 16}, {0xc6120000, 15}, {0xe0000000, 4}, {0xf0000000, 4},
  };
  for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
    if (address_in(address, never[i].address, never[i].bits))
      return true;
  return false;
}

#endif
