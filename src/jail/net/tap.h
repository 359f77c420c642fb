/* SPDX-License-Identifier: Apache-2.0 */
/* tap.h - the link between a jail and the guest in it. */
#ifndef CLOCHE_JAIL_NET_TAP_H
#define CLOCHE_JAIL_NET_TAP_H

#include "base/base.h"

/* Makes tap0 in the network namespace of a jail whose lo stays down, and routes the guest's address and 127/8 over it:
 * jail_connect then reaches the guest's loopback. The tap as a descriptor for QEMU, or negative. */
int tap_open(int netns, uint32_t guest, struct err *err);

#endif
