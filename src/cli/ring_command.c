/* SPDX-License-Identifier: Apache-2.0 */
/* ring_command.c - see ring_command.h. */
#include "cli/ring_command.h"

#include "cli/admin_client.h"
#include "cli/cli.h"
#include "wire/logring.h"

#include <stdio.h>
#include <time.h>

#define RING_READ ((size_t)8 << 20)
#define FOLLOW_NS 500000000

/* Lines after *since; the last one's time is left there. Several of one microsecond at the edge count as told. */
static void print_ring(const struct ring_command *c, struct str lines, int64_t *since, bool raw)
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
    c->print(line, text, at, raw);
  }
  *since = last;
  fflush(stdout);
}

static int show(const struct ring_command *c, struct line *l, const char *id, int64_t *since, bool raw, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX), ring = BUF_INIT(LOGRING_MAX);
  cleanup_fd int fd = -1;
  wire_begin(&b, c->type, 1, 0);
  wire_putz(&b, W_ID, id);
  int r = admin_fetch(l, &b, &fd, err);
  if (r == -EOPNOTSUPP && c->off)
    return err_set(err, r, "%s", c->off);
  if (r)
    return err_set(err, r, "no sandbox %s is known here, nor any that ended lately", id);
  if (fd >= 0 && !logring_read(fd, RING_READ, &ring))
    print_ring(c, buf_str(&ring), since, raw);
  return 0;
}

int ring_command_main(const struct ring_command *c, int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  bool follow = false, raw = false;
  int n = 1;
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "-f") || !strcmp(argv[i], "--follow"))
      follow = true;
    else if (c->json && !strcmp(argv[i], "--json"))
      raw = true;
    else
      argv[n++] = argv[i];
  if (n < 2 || !strcmp(argv[1], "--help")) {
    puts(c->help);
    return n < 2 ? 2 : 0;
  }
  int r = admin_open(&l, &n, argv, &err);
  int64_t since = 0;
  if (!r && n != 2)
    r = err_set(&err, -EINVAL, "one box at a time");
  if (!r)
    r = show(c, &l, argv[1], &since, raw, &err);
  while (!r && follow) {
    nanosleep(&(struct timespec){.tv_nsec = FOLLOW_NS}, NULL);
    r = show(c, &l, argv[1], &since, raw, &err);
  }
  admin_close(&l);
  return r ? usage_error("%s", err.msg), 1 : 0;
}
