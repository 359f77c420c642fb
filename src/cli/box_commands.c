/* SPDX-License-Identifier: Apache-2.0 */
/* box_commands.c - `cloche ps`, `kill`, `pause`, `resume` and `fork`. */
#include "cli/cli.h"
#include "cli/admin_client.h"

#include <stdio.h>

static void print_box(struct str p, void *arg)
{
  int64_t now = clock_wall_us(), started = (int64_t)wire_u64(p, W_STARTED, 0), end = (int64_t)wire_u64(p, W_END, 0);
  static const char *const tiers[] = {[TIER_FROZEN] = "frozen", [TIER_CHECKPOINT] = "on disk", [TIER_FILES] = "files"};
  bool paused = box_state_paused((unsigned)wire_u64(p, W_STATE, 0));
  printf("%-24.*s %-24.*s %-8s %8llds %8llds %3llu %7llu %s\n", STR_ARG(wire_get(p, W_ID)),
         STR_ARG(wire_get(p, W_ALIAS)),
         paused ? tiers[MIN(wire_u64(p, W_TIER, TIER_FROZEN), (uint64_t)TIER_FILES)] : "running",
         (long long)(now - started) / 1000000, (long long)(end - now) / 1000000,
         (unsigned long long)wire_u64(p, W_CPUS, 0), (unsigned long long)wire_u64(p, W_MEMORY_MB, 0),
         wire_u64(p, W_FLAGS, 0) & BOX_MICROVM ? "microvm" : "process");
}

int ps_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  if (argc > 1 && !strcmp(argv[1], "--help")) {
    puts("cloche ps - list the boxes of this machine\n\nUsage: cloche ps [--data DIR] [--json]");
    return 0;
  }
  static const struct json_field fields[] = {
      {"sandboxID", W_ID, FIELD_TEXT},         {"template", W_ALIAS, FIELD_TEXT}, {"teamID", W_TEAM, FIELD_TEXT},
      {"startedAt", W_STARTED, FIELD_TIME},    {"endAt", W_END, FIELD_TIME},      {"cpuCount", W_CPUS, FIELD_NUMBER},
      {"memoryMB", W_MEMORY_MB, FIELD_NUMBER}, {"state", W_STATE, FIELD_STATE}};
  bool json = admin_take_json(&argc, argv);
  int r = admin_open(&l, &argc, argv, &err);
  if (!r && argc > 1)
    r = err_set(&err, -EINVAL, "unexpected word '%s'", argv[1]);
  if (!r && json) {
    cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
    wire_begin(&b, WIRE_BOX_LIST, 1, 0);
    r = admin_print_json(&l, &b, fields, ARRAY_LEN(fields), &err);
  } else if (!r) {
    printf("%-24s %-24s %-8s %9s %9s %3s %7s %s\n", "ID", "TEMPLATE", "STATE", "AGE", "LEFT", "CPU", "MEM MB",
           "ISOLATION");
    cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
    wire_begin(&b, WIRE_BOX_LIST, 1, 0);
    r = admin_call(&l, &b, print_box, NULL, &err);
  }
  admin_close(&l);
  return r ? usage_error("%s", err.msg), 1 : 0;
}

struct verb {
  const char *help;
  enum wire_type type;
  unsigned mode;
  uint64_t timeout_s;
};

/* Takes `word` off the arguments. */
static bool took_flag(int *argc, char **argv, const char *word)
{
  bool found = false;
  int n = 1;
  for (int i = 1; i < *argc; i++)
    if (strcmp(argv[i], word))
      argv[n++] = argv[i];
    else
      found = true;
  *argc = n;
  return found;
}

static int each_box(const struct verb *v, int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  if (argc < 2 || !strcmp(argv[1], "--help")) {
    puts(v->help);
    return argc < 2 ? 2 : 0;
  }
  bool cold = v->type != WIRE_BOX_KILL && took_flag(&argc, argv, "--cold");
  int r = admin_open(&l, &argc, argv, &err), worst = r;
  for (int i = 1; !r && i < argc; i++) {
    cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
    wire_begin(&b, v->type, (uint64_t)i, 0);
    wire_putz(&b, W_ID, argv[i]);
    wire_put_u64(&b, W_MODE, v->mode);
    wire_put_u64(&b, W_TIMEOUT, v->timeout_s);
    wire_put_u64(&b, W_COLD, cold);
    if (admin_call(&l, &b, NULL, NULL, &err))
      worst = usage_error("%s: %s", argv[i], err.msg);
  }
  admin_close(&l);
  return r ? usage_error("%s", err.msg), 1 : worst ? 1 : 0;
}

int kill_main(int argc, char **argv)
{
  return each_box(
      &(struct verb){"cloche kill - end boxes\n\nUsage: cloche kill [--data DIR] ID...", WIRE_BOX_KILL, 0, 0}, argc,
      argv);
}

int pause_main(int argc, char **argv)
{
  return each_box(&(struct verb){"cloche pause - pause boxes, with their memory or (--cold) with their files alone\n\n"
                                 "Usage: cloche pause [--data DIR] [--cold] ID...",
                                 WIRE_BOX_PAUSE, 0, 0},
                  argc, argv);
}

int resume_main(int argc, char **argv)
{
  return each_box(
      &(struct verb){"cloche resume - resume paused boxes, for an hour; with --cold from their files alone\n\n"
                     "Usage: cloche resume [--data DIR] [--cold] ID...",
                     WIRE_BOX_CONNECT, CONNECT_RESUME, 3600},
      argc, argv);
}

static void print_fork(struct str p, void *arg)
{
  int *failed = arg;
  struct str id = wire_get(p, W_ID);
  if (id.n)
    printf(STR_FMT "\n", STR_ARG(id));
  else
    *failed = usage_error(STR_FMT, STR_ARG(wire_get(p, W_MESSAGE)));
}

/* The new boxes live an hour, as resumed ones do. */
int fork_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  int failed = 0;
  uint64_t count = 1;
  char build[UUID_TEXT];
  if (argc < 2 || !strcmp(argv[1], "--help")) {
    puts("cloche fork - copy a running box, memory and all, and print the new ids\n\nUsage: cloche fork [--data DIR] "
         "ID [COUNT]");
    return argc < 2 ? 2 : 0;
  }
  int r = admin_open(&l, &argc, argv, &err);
  if (!r && (argc < 2 || argc > 3 || (argc == 3 && (str_u64(str_of(argv[2]), &count) || count < 1 || count > 100))))
    r = err_set(&err, -EINVAL, "expected one box, and how many copies from 1 to 100");
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX), ids = BUF_INIT(4096);
  for (uint64_t i = 0; !r && i < count; i++) {
    char id[BOX_ID_SIZE] = "i";
    random_id(id + 1, 20);
    buf_addf(&ids, "%s%s", i ? "," : "", id);
  }
  uuid4(build);
  wire_begin(&b, WIRE_BOX_FORK, 1, 0);
  wire_putz(&b, W_ID, argc > 1 ? argv[1] : "");
  wire_putz(&b, W_BUILD, build);
  wire_put(&b, W_REF, buf_str(&ids));
  wire_put_u64(&b, W_TIMEOUT, 3600);
  r = r ? r : admin_call(&l, &b, print_fork, &failed, &err);
  admin_close(&l);
  return r ? usage_error("%s", err.msg), 1 : failed ? 1 : 0;
}
