/* SPDX-License-Identifier: Apache-2.0 */
/* net_command.c - `cloche net`: which names a box looked up and where it connected, while it lives and for a while
 * after its end. */
#include "cli/cli.h"
#include "cli/admin_client.h"
#include "wire/logring.h"

#include <stdio.h>
#include <time.h>

#define RING_READ ((size_t)4 << 20)
#define FOLLOW_NS 500000000

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

static void print_line(const struct json *line, int64_t at)
{
  char when[CLOCK_TEXT];
  int64_t connection = 0;
  struct str event = word(line, "e");
  clock_text(at, when);
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

/* Lines after *since, as JSON or for people; the last one's time is left there. */
static void print_ring(struct str lines, int64_t *since, bool raw)
{
  struct str text;
  int64_t last = *since;
  while (lines.n > 0) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 20);
    int64_t at = 0;
    str_cut(lines, '\n', &text, &lines);
    const struct json *line = json_read(&a, text, JSON_REPAIR_UTF8, NULL);
    if (!json_is(line, JSON_OBJECT) || json_int(json_get(line, "t"), &at) || at <= *since)
      continue;
    last = MAX(last, at);
    if (raw)
      printf(STR_FMT "\n", STR_ARG(text));
    else
      print_line(line, at);
  }
  *since = last;
  fflush(stdout);
}

static int show(struct line *l, const char *id, int64_t *since, bool raw, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX), ring = BUF_INIT(LOGRING_MAX);
  cleanup_fd int fd = -1;
  wire_begin(&b, WIRE_BOX_NET_LOG, 1, 0);
  wire_putz(&b, W_ID, id);
  int r = admin_fetch(l, &b, &fd, err);
  if (r == -EOPNOTSUPP)
    return err_set(err, r, "this server keeps no network log: set network_log to names or full");
  if (r)
    return err_set(err, r, "no sandbox %s is known here, nor any that ended lately", id);
  if (fd >= 0 && !logring_read(fd, RING_READ, &ring))
    print_ring(buf_str(&ring), since, raw);
  return 0;
}

int net_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  bool follow = false, raw = false;
  int n = 1;
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "-f") || !strcmp(argv[i], "--follow"))
      follow = true;
    else if (!strcmp(argv[i], "--json"))
      raw = true;
    else
      argv[n++] = argv[i];
  if (n < 2 || !strcmp(argv[1], "--help")) {
    puts("cloche net - where a box connected\n\nUsage: cloche net [-f] [--json] ID [--data DIR]\n\n"
         "Shows which names a box looked up and where it connected or was refused, oldest first, as far as its\n"
         "network log goes back (settings network_log, network_log_kb). A box that ended is remembered for\n"
         "keep_ended_hours.\n\n"
         "  -f, --follow   go on with what happens from now on, until interrupted or the box is gone\n"
         "  --json         the lines as they are kept");
    return n < 2 ? 2 : 0;
  }
  int r = admin_open(&l, &n, argv, &err);
  int64_t since = 0;
  if (!r && n != 2)
    r = err_set(&err, -EINVAL, "one box at a time");
  if (!r)
    r = show(&l, argv[1], &since, raw, &err);
  while (!r && follow) {
    nanosleep(&(struct timespec){.tv_nsec = FOLLOW_NS}, NULL);
    r = show(&l, argv[1], &since, raw, &err);
  }
  admin_close(&l);
  return r ? usage_error("%s", err.msg), 1 : 0;
}
