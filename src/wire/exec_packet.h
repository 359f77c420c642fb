/* order.h - how the warden has commands run in a box that builds a template.
 *
 * Such a box is born with BOOT_ORDERS in its boot packet: the agent answers BOOT_READY and then keeps the socket. One
 * packet is one order, a row of fields as in boot.h; a descriptor that comes along becomes the command's standard input. What
 * the agent sends back has one fixed shape: a struct order_word and bytes that nobody here reads but a log. Several orders may
 * be under way at once; their numbers tell them apart. */
#ifndef CLOCHE_ORDER_H
#define CLOCHE_ORDER_H

#include <stdint.h>

enum order_tag {
  ORDER_NUMBER = 1, /* text: decimal */
  ORDER_USER = 2,   /* text; absent or empty: the box's root, whatever its /etc/passwd says */
  ORDER_CWD = 3,    /* text; absent or empty: the user's home */
  ORDER_ARG = 4,    /* text, once per argument; the first is the program */
};

enum order_what {
  ORDER_STDOUT = 1, /* bytes */
  ORDER_STDERR,     /* bytes */
  ORDER_END,        /* status: exit code, or 128 + signal */
  ORDER_REFUSED,    /* bytes: why it was not begun */
};

struct order_word {
  uint32_t number, what;
  int32_t status;
};

#define ORDER_CHUNK (32u << 10) /* most bytes behind a word */

#endif
