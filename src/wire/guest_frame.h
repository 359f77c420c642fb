/* SPDX-License-Identifier: Apache-2.0 */
/* guest_frame.h - what a guest and warder, the first process of its jail, say to each other (src/guest/guest.h).
 *
 * A virtio-serial port carries frames: a head and `length` bytes. The guest may say anything; warder bounds what it
 * takes, and a frame that does not fit the state ends the box. Also what both sides of the link between guest and jail
 * agree on. */
#ifndef CLOCHE_WIRE_GUEST_FRAME_H
#define CLOCHE_WIRE_GUEST_FRAME_H

#include "base/base.h"

#define GUEST_PORT_NAME  "boot" /* of the virtio-serial port */
#define GUEST_PORT_FD    60     /* of QEMU: its end of the port */
#define GUEST_LAYER_MAX  18 /* disks of layers: 24 virtio-mmio slots, less scratch, network, entropy, port and spare */
#define GUEST_HOST       0xa9fe0001u                /* 169.254.0.1: the jail's end of the link */
#define GUEST_ALONE      0xa9fe0002u                /* 169.254.0.2: a guest on a server without outbound networking */
#define GUEST_HOST_MAC   "\x02\x63\x6c\x6f\x00\x01" /* fixed: a restored guest knows its peer by it */
#define GUEST_MAC        "\x02\x63\x6c\x6f\x00\x02"
#define GUEST_MAC_TEXT   "02:63:6c:6f:00:02"
#define GUEST_PROBE      "GUEST_PROBE"     /* kernel parameter: say that the kernel runs, and end */
#define GUEST_PROBED     "cloche-guest-up" /* what it then prints */
#define GUEST_ANSWER_MAX 1024              /* bytes of the agent's answer */

enum guest_word {
  GUEST_ASKS = 'Q',   /* guest: is up, wants its configuration; empty */
  GUEST_CONFIG = 'C', /* host: variables for the agent, each with its NUL; those that begin with GUEST_ are for init */
  GUEST_BOOT = 'B',   /* host: a packet for the agent's fd 3 */
  GUEST_ANSWER = 'A', /* guest: a packet of the agent */
  GUEST_END = 'E',    /* guest: the agent has closed its socket; empty */
};

/* What warder ends with once the guest is up: all that the warden learns about the end of a guest. */
enum guest_end {
  GUEST_ENDED = 40,       /* it rebooted or halted, or its agent is over */
  GUEST_PANICKED = 41,    /* its kernel said so on the console */
  GUEST_QEMU_KILLED = 42, /* by a signal */
  GUEST_QEMU_FAILED = 43, /* with a status of its own */
};

/* Little-endian on both sides, which are one processor. */
struct guest_frame {
  uint32_t length;
  uint8_t word;
  uint8_t zero[3];
};

/* What a stream of frames has collected. */
struct guest_reader {
  struct buf bytes;
  size_t max; /* bytes of one frame */
};
/* The first whole frame of what was read: 1 with *body borrowed until guest_frame_done, 0 when there is none yet,
 * -EPROTO when its head is not one. */
int guest_frame_next(const struct guest_reader *r, struct guest_frame *head, struct str *body);
void guest_frame_done(struct guest_reader *r, const struct guest_frame *head); /* takes it out */
/* Reads what is there: bytes, 0 at the end, or -errno. */
ssize_t guest_read(struct guest_reader *r, int fd);
int guest_write(int fd, enum guest_word word, const void *p, size_t n); /* a blocking descriptor; 0 or -errno */

#endif
