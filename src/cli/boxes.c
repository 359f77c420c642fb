/* boxes.c - `cloche ps`, `kill`, `pause` and `resume`. */
#include "cli/cli.h"
#include "cli/desk_line.h"

#include <stdio.h>

static void print_box(struct str p, void *arg)
{
  int64_t now = clock_wall_us(), started = (int64_t)wire_u64(p, W_STARTED, 0), end = (int64_t)wire_u64(p, W_END, 0);
  printf("%-24.*s %-24.*s %-8s %8llds %8llds %3llu %7llu\n", STR_ARG(wire_get(p, W_ID)), STR_ARG(wire_get(p, W_ALIAS)),
         box_state_asleep((unsigned)wire_u64(p, W_STATE, 0)) ? "paused" : "running", (long long)(now - started) / 1000000,
         (long long)(end - now) / 1000000, (unsigned long long)wire_u64(p, W_CPUS, 0), (unsigned long long)wire_u64(p, W_MEMORY_MB, 0));
}

int ps_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  if (argc > 1 && !strcmp(argv[1], "--help")) {
    puts("cloche ps - list the boxes of this machine\n\nUsage: cloche ps [--data DIR]");
    return 0;
  }
  int r = line_open(&l, &argc, argv, &err);
  if (!r && argc > 1)
    r = err_set(&err, -EINVAL, "unexpected word '%s'", argv[1]);
  if (!r) {
    printf("%-24s %-24s %-8s %9s %9s %3s %7s\n", "ID", "TEMPLATE", "STATE", "AGE", "LEFT", "CPU", "MEM MB");
    cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
    wire_begin(&b, WIRE_BOX_LIST, 1, 0);
    r = line_ask(&l, &b, print_box, NULL, &err);
  }
  line_close(&l);
  return r ? usage_error("%s", err.msg), 1 : 0;
}

struct verb {
  const char *help;
  enum wire_type type;
  unsigned mode;
  uint64_t timeout_s;
};

static int each_box(const struct verb *v, int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  if (argc < 2 || !strcmp(argv[1], "--help")) {
    puts(v->help);
    return argc < 2 ? 2 : 0;
  }
  int r = line_open(&l, &argc, argv, &err), worst = r;
  for (int i = 1; !r && i < argc; i++) {
    cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
    wire_begin(&b, v->type, (uint64_t)i, 0);
    wire_putz(&b, W_ID, argv[i]);
    wire_put_u64(&b, W_MODE, v->mode);
    wire_put_u64(&b, W_TIMEOUT, v->timeout_s);
    if (line_ask(&l, &b, NULL, NULL, &err))
      worst = usage_error("%s: %s", argv[i], err.msg);
  }
  line_close(&l);
  return r ? usage_error("%s", err.msg), 1 : worst ? 1 : 0;
}

int kill_main(int argc, char **argv)
{
  return each_box(&(struct verb){"cloche kill - end boxes\n\nUsage: cloche kill [--data DIR] ID...", WIRE_BOX_KILL, 0, 0}, argc, argv);
}

int pause_main(int argc, char **argv)
{
  return each_box(
      &(struct verb){"cloche pause - put boxes to sleep; they keep their memory\n\nUsage: cloche pause [--data DIR] ID...", WIRE_BOX_PAUSE, 0, 0},
      argc, argv);
}

int resume_main(int argc, char **argv)
{
  return each_box(&(struct verb){"cloche resume - wake paused boxes, for an hour\n\nUsage: cloche resume [--data DIR] ID...", WIRE_BOX_CONNECT,
                                 CONNECT_RESUME, 3600},
                  argc, argv);
}
