/* SPDX-License-Identifier: Apache-2.0 */
/* exec_packet.h - how the warden has commands run in a box that builds a template.
 *
 * Such a box is launched with BOOT_BUILD in its boot packet: the agent answers BOOT_READY and then keeps the socket.
 * One packet is one command, a row of fields as in boot_packet.h; a descriptor that comes along becomes the command's
 * standard input. What the agent sends back has one fixed shape: a struct exec_event and bytes that nobody here reads
 * but a log. Several commands may run at once; their numbers tell them apart. */
#ifndef CLOCHE_WIRE_EXEC_PACKET_H
#define CLOCHE_WIRE_EXEC_PACKET_H

#include <stdint.h>

enum exec_tag {
  EXEC_NUMBER = 1, /* text: decimal */
  EXEC_USER = 2,   /* text; absent or empty: the box's root, whatever its /etc/passwd says */
  EXEC_CWD = 3,    /* text; absent or empty: the user's home */
  EXEC_ARG = 4,    /* text, once per argument; the first is the program */
  EXEC_ENV = 5,    /* NAME=VALUE, once per variable: in place of the template's own; an empty one stands for none */
};

enum exec_what {
  EXEC_STDOUT = 1, /* bytes */
  EXEC_STDERR,     /* bytes */
  EXEC_END,        /* status: exit code, or 128 + signal */
  EXEC_REFUSED,    /* bytes: why it was not begun */
};

struct exec_event {
  uint32_t number, what;
  int32_t status;
};

#define EXEC_CHUNK (32u << 10) /* most bytes after a struct exec_event */

#endif
