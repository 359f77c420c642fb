/* SPDX-License-Identifier: Apache-2.0 */
/* node_command.c - `cloche node list|drain|ready`: before maintenance a machine is emptied of boxes. */
#include "cli/cli.h"
#include "cli/admin_client.h"
#include "wire/node_record.h"

#include <poll.h>
#include <stdio.h>

#define LOOK_MS 500 /* between two counts of what still runs */

static const char help[] =
    "cloche node - this machine's part in running sandboxes\n\n"
    "Usage: cloche node list                          the machines that share a store, or this one: status, what runs\n"
    "                                                 there, epoch, address and labels\n"
    "       cloche node drain [--pause] [--wait SECONDS]\n"
    "                                                 no new sandboxes from now on, over restarts too; those that run "
    "go on.\n"
    "                                                 --pause: they are paused; --wait: until none runs, so long at "
    "most\n"
    "       cloche node ready                         it takes sandboxes again\n\n"
    "While it drains, creates, resumes and builds are answered with 503 and Retry-After. Status 3: some still run.\n\n"
    "Options: --data DIR   the server's data directory [/var/lib/cloche]";

static int read_status(struct line *l, struct wire_status *s, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_STATUS, 1, 0);
  int r = admin_call(l, &b, NULL, NULL, err);
  struct str got = r ? STR_NONE : wire_get(buf_str(&b), W_STATUS);
  if (r || got.n != sizeof(*s))
    return r ? r : err_set(err, -EPROTO, "the server is of another version; restart it");
  memcpy(s, got.p, sizeof(*s));
  return 0;
}

static void print_node(struct str p, void *arg)
{
  struct node_record r;
  char since[CLOCK_TEXT];
  if (node_record_read(p, &r))
    return;
  clock_text(r.n.since_us, since);
  printf("%-20s %-10s %-26s %8llu %8llu %8llu %6llu %10llu", r.name, node_status_word(&r.n), since,
         (unsigned long long)r.n.running, (unsigned long long)r.n.paused, (unsigned long long)r.n.warm,
         (unsigned long long)r.n.cpus_given, (unsigned long long)r.n.memory_given >> 20);
  if (r.machine[0])
    printf(" %6llu %s %s", (unsigned long long)r.n.epoch, r.address, r.labels);
  putchar('\n');
}

static int ask_nodes(struct line *l, const char *name, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_NODE_LIST, 1, 0);
  wire_putz(&b, W_ID, name);
  return admin_call(l, &b, print_node, NULL, err);
}

/* Without the store this machine is known all the same. */
static int list(struct line *l, struct err *err)
{
  printf("%-20s %-10s %-26s %8s %8s %8s %6s %10s\n", "NODE", "STATUS", "SINCE", "RUNNING", "PAUSED", "WARM", "CPUS",
         "MEMORY MB");
  int r = ask_nodes(l, "", err);
  if (r != -ESHUTDOWN)
    return r;
  fprintf(stderr, "cloche: only this machine is told: %s\n", err->msg);
  return ask_nodes(l, NODE_LOCAL, err);
}

static int change(struct line *l, enum node_status status, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_NODE_CHANGE, 1, 0);
  wire_put_u64(&b, W_STATE, status);
  return admin_call(l, &b, NULL, NULL, err);
}

/* ---- draining ---- */

struct drain {
  bool pause, wait;
  uint64_t seconds;
};
struct ids {
  VEC(char *) list;
};

static void keep_running(struct str p, void *arg)
{
  struct str id = wire_get(p, W_ID);
  if (!box_state_paused((unsigned)wire_u64(p, W_STATE, 0)))
    vec_push(&((struct ids *)arg)->list, xstrndup(id.p, id.n));
}

/* One that can't be paused is named and goes on. */
static void pause_one(struct line *l, const char *id)
{
  struct err err = ERR_NONE;
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_BOX_PAUSE, 1, 0);
  wire_putz(&b, W_ID, id);
  if (admin_call(l, &b, NULL, NULL, &err))
    fprintf(stderr, "cloche: %s goes on: %s\n", id, err.msg);
  else
    printf("%s paused\n", id);
}

static int pause_all(struct line *l, struct err *err)
{
  struct ids ids = {0};
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_BOX_LIST, 1, 0);
  int r = admin_call(l, &b, keep_running, &ids, err);
  for (size_t i = 0; i < ids.list.n; i++) {
    if (!r)
      pause_one(l, ids.list.p[i]);
    free(ids.list.p[i]);
  }
  vec_free(&ids.list);
  return r;
}

/* 1: some still run. */
static int wait_empty(struct line *l, const struct drain *d, struct err *err)
{
  int64_t until = clock_mono_us() + (int64_t)d->seconds * 1000000;
  struct wire_status s;
  for (;;) {
    int r = read_status(l, &s, err);
    if (r || s.running + s.starting == 0)
      return r;
    if (!d->wait || clock_mono_us() >= until)
      break;
    poll(NULL, 0, LOOK_MS);
  }
  printf("%llu sandboxes still run; cloche ps lists them\n", (unsigned long long)(s.running + s.starting));
  return 1;
}

static int read_drain(int argc, char **argv, struct drain *d, struct err *err)
{
  for (int i = 2; i < argc; i++) {
    bool wait = !strcmp(argv[i], "--wait");
    if (!wait && strcmp(argv[i], "--pause"))
      return err_set(err, -EINVAL, "unexpected word '%s'; see cloche node --help", argv[i]);
    d->pause |= !wait;
    if (wait && (++i == argc || str_u64(str_of(argv[i]), &d->seconds) || d->seconds > INT32_MAX))
      return err_set(err, -EINVAL, "--wait needs a number of seconds");
    d->wait |= wait;
  }
  return 0;
}

static int drain(struct line *l, int argc, char **argv, struct err *err)
{
  struct drain d = {0};
  int r = read_drain(argc, argv, &d, err);
  r = r ? r : change(l, NODE_DRAINING, err);
  r = r || !d.pause ? r : pause_all(l, err);
  r = r ? r : wait_empty(l, &d, err);
  if (!r)
    puts("no sandbox runs");
  return r;
}

static int run(struct line *l, int argc, char **argv, struct err *err)
{
  if (!strcmp(argv[1], "drain"))
    return drain(l, argc, argv, err);
  if (argc > 2)
    return err_set(err, -EINVAL, "unexpected word '%s'; see cloche node --help", argv[2]);
  if (!strcmp(argv[1], "list"))
    return list(l, err);
  if (!strcmp(argv[1], "ready"))
    return change(l, NODE_READY, err);
  return err_set(err, -EINVAL, "cloche node knows list, drain and ready, not '%s'", argv[1]);
}

int node_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  if (argc < 2 || !strcmp(argv[1], "--help")) {
    puts(help);
    return argc < 2 ? 2 : 0;
  }
  int r = admin_open(&l, &argc, argv, &err);
  r = r ? r : argc < 2 ? err_set(&err, -EINVAL, "say list, drain or ready") : run(&l, argc, argv, &err);
  admin_close(&l);
  return r < 0 ? usage_error("%s", err.msg), 1 : r ? 3 : 0;
}
