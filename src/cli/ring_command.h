/* SPDX-License-Identifier: Apache-2.0 */
/* ring_command.h - commands that show a ring of a box (wire/logring.h), once or as it grows: `cloche logs`, `cloche
 * net`.
 */
#ifndef CLOCHE_CLI_RING_COMMAND_H
#define CLOCHE_CLI_RING_COMMAND_H

#include "base/base.h"
#include "wire/wire.h"

struct ring_command {
  const char *help;
  enum wire_type type; /* W_ID -> descriptor of the ring */
  bool json;           /* it takes --json */
  const char *off;     /* what is said where the server keeps no such ring; NULL = all do */
  /* A line later than what was shown; `text` is the line itself, to be printed as it is where raw is wanted. */
  void (*print)(const struct json *line, struct str text, int64_t at_us, bool raw);
};

int ring_command_main(const struct ring_command *c, int argc, char **argv);

#endif
