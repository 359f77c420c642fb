/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - `cloche logs`: what a box's processes and kernels printed, while it lives and for a while after its end. The
 * text is the box's own: whatever could move a terminal's cursor is shown as a question mark. */
#include "cli/cli.h"
#include "cli/admin_client.h"
#include "wire/logring.h"

#include <stdio.h>
#include <time.h>

#define LOGS_READ ((size_t)8 << 20)
#define FOLLOW_NS 500000000

static void print_text(struct str text)
{
  for (size_t i = 0; i < text.n; i++) {
    unsigned char c = (unsigned char)text.p[i];
    putchar(c == '\t' || c == '\n' || (c >= 0x20 && c != 0x7f) ? c : '?');
  }
}

/* Entries after *since; the last one's time is left there. Several of one microsecond at the edge count as told. */
static void print_ring(struct str lines, int64_t *since)
{
  struct str line;
  int64_t last = *since;
  while (lines.n > 0) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 20);
    int64_t at = 0;
    char when[CLOCK_TEXT];
    str_cut(lines, '\n', &line, &lines);
    struct json *v = json_read(&a, line, JSON_REPAIR_UTF8, NULL);
    if (!json_is(v, JSON_OBJECT) || json_int(json_get(v, "t"), &at) || at <= *since)
      continue;
    last = MAX(last, at);
    clock_text(at, when);
    printf("%s %-5.*s ", when, STR_ARG(json_text(json_get(v, "l"), STR("info"))));
    struct str source = json_text(json_get(v, "g"), STR("")), pid = json_text(json_get(v, "pid"), STR(""));
    printf("%.*s%s%.*s: ", STR_ARG(source), pid.n ? " " : "", STR_ARG(pid));
    print_text(str_trim(json_text(json_get(v, "m"), STR(""))));
    putchar('\n');
  }
  *since = last;
  fflush(stdout);
}

static int show(struct line *l, const char *id, int64_t *since, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX), ring = BUF_INIT(LOGRING_MAX);
  cleanup_fd int fd = -1;
  wire_begin(&b, WIRE_BOX_LOG, 1, 0);
  wire_putz(&b, W_ID, id);
  int r = admin_fetch(l, &b, &fd, err);
  if (r)
    return err_set(err, r, "no sandbox %s is known here, nor any that ended lately", id);
  if (fd >= 0 && !logring_read(fd, LOGS_READ, &ring))
    print_ring(buf_str(&ring), since);
  return 0;
}

int logs_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  bool follow = false;
  int n = 1;
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "-f") || !strcmp(argv[i], "--follow"))
      follow = true;
    else
      argv[n++] = argv[i];
  if (n < 2 || !strcmp(argv[1], "--help")) {
    puts("cloche logs - what a box printed\n\nUsage: cloche logs [-f] ID [--data DIR]\n\n"
         "Shows what the processes, kernels and start command of a box wrote, oldest first, as far as its log\n"
         "goes back (setting log_bytes). A box that ended is remembered for keep_ended_hours.\n\n"
         "  -f, --follow   go on with what is written from now on, until interrupted or the box is gone");
    return n < 2 ? 2 : 0;
  }
  int r = admin_open(&l, &n, argv, &err);
  int64_t since = 0;
  if (!r && n != 2)
    r = err_set(&err, -EINVAL, "one box at a time");
  if (!r)
    r = show(&l, argv[1], &since, &err);
  while (!r && follow) {
    nanosleep(&(struct timespec){.tv_nsec = FOLLOW_NS}, NULL);
    r = show(&l, argv[1], &since, &err);
  }
  admin_close(&l);
  return r ? usage_error("%s", err.msg), 1 : 0;
}
