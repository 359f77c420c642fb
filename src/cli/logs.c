/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - `cloche logs`: what a box's processes and kernels printed, while it lives and for a while after its end. The
 * text is the box's own: whatever could move a terminal's cursor is shown as a question mark. */
#include "cli/cli.h"
#include "cli/ring_command.h"

#include <stdio.h>

static void print_text(struct str text)
{
  for (size_t i = 0; i < text.n; i++) {
    unsigned char c = (unsigned char)text.p[i];
    putchar(c == '\t' || c == '\n' || (c >= 0x20 && c != 0x7f) ? c : '?');
  }
}

static void print_line(const struct json *v, struct str text, int64_t at_us, bool raw)
{
  char when[CLOCK_TEXT];
  clock_text(at_us, when);
  printf("%s %-5.*s ", when, STR_ARG(json_text(json_get(v, "l"), STR("info"))));
  struct str source = json_text(json_get(v, "g"), STR("")), pid = json_text(json_get(v, "pid"), STR(""));
  printf("%.*s%s%.*s: ", STR_ARG(source), pid.n ? " " : "", STR_ARG(pid));
  print_text(str_trim(json_text(json_get(v, "m"), STR(""))));
  putchar('\n');
}

int logs_main(int argc, char **argv)
{
  static const struct ring_command logs = {
      .help = "cloche logs - what a box printed\n\nUsage: cloche logs [-f] ID [--data DIR]\n\n"
              "Shows what the processes, kernels and start command of a box wrote, oldest first, as far as its log\n"
              "goes back (setting log_bytes). A box that ended is remembered for keep_ended_hours.\n\n"
              "  -f, --follow   go on with what is written from now on, until interrupted or the box is gone",
      .type = WIRE_BOX_LOG,
      .print = print_line,
  };
  return ring_command_main(&logs, argc, argv);
}
