/* SPDX-License-Identifier: Apache-2.0 */
/* boot_packet.h - what the warden sends a new agent through fd 3, and what the agent answers.
 *
 * fd 3 of the agent is one end of a SOCK_SEQPACKET pair. The warden sends one packet: a sequence of fields, each a
 * struct boot_field followed by `len` bytes. The agent applies them, opens its listeners, answers the one byte
 * BOOT_READY (or BOOT_FAILED and a message) and closes the socket: no connection to the outside stays open, so that a
 * checkpoint can be taken at any time. A box is launched when the warden has read BOOT_READY and then the end of the
 * socket.
 *
 * A warm box gets a first packet with BOOT_WAIT: the agent prepares what it can without an identity, warms its
 * kernels, and waits for a second packet with the rest. A packet with BOOT_NURSERY carries a descriptor: the socket of
 * a process that enters the box from outside and becomes its first kernel of that language.
 *
 * For more kernels than that the agent connects to the name BOOT_NURSERY_NAME followed by a language's name, and a
 * nursery comes and speaks through that connection. Where none can come, it is closed. The warden reads nothing of it
 * and takes no descriptor; both sides check the peer with SO_PEERCRED. */
#ifndef CLOCHE_WIRE_BOOT_PACKET_H
#define CLOCHE_WIRE_BOOT_PACKET_H

#include <stdint.h>

enum boot_tag {
  BOOT_BOX_ID = 1,      /* text */
  BOOT_TEMPLATE_ID = 2, /* text */
  BOOT_BUILD_ID = 3,    /* text */
  BOOT_SECRET = 4,      /* text: proves that a later POST /init comes from the warden (header X-Cloche-Control) */
  BOOT_TEMPLATE = 5,    /* JSON: {"env":{..},"user":"user","workdir":"/home/user","start":"..","ready":"..",
                           "startContext":{"env","user","workdir"} where the start command is inherited} of
                           the template's build */
  BOOT_INIT = 6,        /* JSON: the body of the first POST /init: accessToken, envVars, ... */
  BOOT_WAIT = 7,        /* empty: another packet will come */
  BOOT_NURSERY = 8,     /* text: the language whose first kernel's socket comes along */
  BOOT_AUTHORITY = 10,  /* text: PEM certificate of the authority that the box's egress gateway shows certificates of */
  BOOT_BUILD = 9,       /* empty: this box builds a template; the socket stays open for commands (exec_packet.h) */
};

struct boot_field {
  uint32_t tag;
  uint32_t len;
};

#define BOOT_MAX            (1u << 20) /* the whole packet */
/* The subject of these authorities, alike for all boxes, and what OpenSSL names files of it by. */
#define BOOT_AUTHORITY_NAME "Sandbox egress"
#define BOOT_AUTHORITY_HASH "f6694031"
#define BOOT_READY          'R'
#define BOOT_FAILED         'F'
#define BOOT_NURSERY_NAME   "cloche-nursery-" /* an abstract socket in the box's network namespace */

#endif
