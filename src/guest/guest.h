/* SPDX-License-Identifier: Apache-2.0 */
/* guest.h - a box behind a second kernel: what runs in the guest, and what runs beside QEMU. Start here.
 *
 * Two static programs. `warder` is pid 1 of the jail: it starts QEMU, which has no rights, and carries the agent's boot
 * packets between the warden's socket (fd 3, wire/boot_packet.h) and a virtio-serial port (wire/guest_frame.h), so that
 * the warden reads the same bounded words as from a box without a guest, and nothing that QEMU says. `guest-init` is
 * pid 1 of the guest: it loads modules, puts the layers together, sets the link up and starts the agent as pid 1 of
 * namespaces of its own; the agent has a SOCK_SEQPACKET socket as fd 3, as everywhere.
 *
 * Below are the parts of guest-init. Each does its work or ends the guest with a reason on the console. */
#ifndef CLOCHE_GUEST_H
#define CLOCHE_GUEST_H

#include "base/base.h"

struct guest_config {
  const char *hostname, *nameserver; /* NULL: none */
  uint32_t address;                  /* of the guest, host byte order */
  unsigned layers;
  const char *envs[64 + 1]; /* of the agent */
};

_Noreturn void guest_die(const char *fmt, ...) PRINTF_LIKE(1, 2); /* the console has the reason; the machine ends */
void guest_load_modules(const char *dir);                         /* *.ko in the order of their names */
void guest_make_root(const struct guest_config *c);               /* the overlay at GUEST_ROOT */
void guest_enter_root(const struct guest_config *c);              /* the caller is alone in a mount namespace */
void guest_link_up(uint32_t address);

#define GUEST_ROOT "/box"

#endif
