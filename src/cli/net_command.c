/* SPDX-License-Identifier: Apache-2.0 */
/* net_command.c - `cloche net`: which names a box looked up and where it connected, while it lives and for a while
 * after its end. */
#include "cli/cli.h"
#include "cli/ring_command.h"

#include <stdio.h>

/* Names and paths are the box's own text: whatever could move a terminal's cursor is shown as a question mark. */
static void print_text(struct str text)
{
  for (size_t i = 0; i < text.n; i++)
    putchar(text.p[i] >= 0x20 && text.p[i] < 0x7f ? text.p[i] : '?');
}

static struct str word(const struct json *line, const char *key)
{
  return json_text(json_get(line, key), STR(""));
}

static void print_bytes(const struct json *line)
{
  int64_t in, out;
  if (!json_int(json_get(line, "i"), &in) && !json_int(json_get(line, "o"), &out))
    printf("  %lld in, %lld out", (long long)in, (long long)out);
}

static void print_answer(const struct json *line)
{
  int64_t code = 0;
  const struct json *addresses = json_get(line, "a");
  print_text(word(line, "n"));
  for (const struct json *a = json_is(addresses, JSON_ARRAY) ? addresses->kids : NULL; a; a = a->next) {
    putchar(' ');
    print_text(json_text(a, STR("?")));
  }
  if (!json_int(json_get(line, "r"), &code) && code)
    printf(" (response code %lld)", (long long)code);
}

static void print_place(const struct json *line)
{
  int64_t port = 0;
  json_int(json_get(line, "q"), &port);
  print_text(word(line, "p"));
  putchar(' ');
  print_text(word(line, "a"));
  if (port)
    printf(":%lld", (long long)port);
  if (word(line, "n").n) {
    putchar(' ');
    print_text(word(line, "n"));
  }
}

static void print_request(const struct json *line)
{
  int64_t status;
  print_text(word(line, "v"));
  putchar(' ');
  print_place(line);
  if (word(line, "w").n) {
    printf("  rule ");
    print_text(word(line, "w"));
  }
  if (word(line, "m").n) {
    printf("  ");
    print_text(word(line, "m"));
    putchar(' ');
    print_text(word(line, "u"));
  }
  if (!json_int(json_get(line, "s"), &status))
    printf(" %lld", (long long)status);
  print_bytes(line);
}

static void print_line(const struct json *line, struct str text, int64_t at_us, bool raw)
{
  if (raw) {
    printf(STR_FMT "\n", STR_ARG(text));
    return;
  }
  char when[CLOCK_TEXT];
  int64_t connection = 0;
  struct str event = word(line, "e");
  clock_text(at_us, when);
  printf("%s %-8.*s ", when, STR_ARG(event));
  if (!json_int(json_get(line, "c"), &connection))
    printf("#%lld ", (long long)connection % 1000000);
  if (str_is(event, "name"))
    print_answer(line);
  else if (str_is(event, "request"))
    print_request(line);
  else if (str_is(event, "end"))
    print_bytes(line);
  else if (str_is(event, "lost"))
    printf("more happened than is written down");
  else
    print_place(line);
  if (str_is(event, "refused")) {
    printf(" by ");
    print_text(word(line, "w"));
  }
  putchar('\n');
}

int net_main(int argc, char **argv)
{
  static const struct ring_command net = {
      .help = "cloche net - where a box connected\n\nUsage: cloche net [-f] [--json] ID [--data DIR]\n\n"
              "Shows which names a box looked up and where it connected or was refused, oldest first, as far as its\n"
              "network log goes back (settings network_log, network_log_kb). A box that ended is remembered for\n"
              "keep_ended_hours.\n\n"
              "  -f, --follow   go on with what happens from now on, until interrupted or the box is gone\n"
              "  --json         the lines as they are kept",
      .type = WIRE_BOX_NET_LOG,
      .json = true,
      .off = "this server keeps no network log: set network_log to names or full",
      .print = print_line,
  };
  return ring_command_main(&net, argc, argv);
}
