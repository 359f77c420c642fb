/* SPDX-License-Identifier: Apache-2.0 */
/* events_command.c - `cloche events`: what happened to the sandboxes of this machine, and what happens. The same events
 * that clients read. Names that clients chose are shown without what could move a terminal's cursor. */
#include "cli/cli.h"
#include "cli/admin_client.h"
#include "wire/event_type.h"

#include <stdio.h>
#include <time.h>

#define FOLLOW_NS     250000000
#define LINES_DEFAULT 20
#define LINES_MOST    1000

static const char help[] =
    "cloche events - what happened to the sandboxes of this machine\n\n"
    "Usage: cloche events [-f] [-n LINES] [--sandbox ID] [--team ID] [--type TYPE]... [--json] [--data DIR]\n\n"
    "Shows the latest lifecycle events of all teams, oldest first: when, what, which sandbox, and what there is to\n"
    "say about it. A killed sandbox's line has the reason and how long its last run was. Events are kept for\n"
    "events_keep_days, at most events_max of them; clients read those of their own team at GET /events/sandboxes.\n\n"
    "  -f, --follow     go on with what happens from now on, until interrupted; a server that restarts is waited for\n"
    "  -n, --lines N    so many of the latest events, 0 to 1000 [20]\n"
    "  --sandbox ID     only of this sandbox\n"
    "  --team ID        only of this team ('cloche team list' names them)\n"
    "  --type TYPE      only of this type, may be given more than once: created, updated, paused, resumed,\n"
    "                   checkpointed, killed, or the full name (sandbox.lifecycle.killed)\n"
    "  --json           one event per line as JSON, in the spelling of the REST API\n"
    "  --data DIR       the server's data directory [/var/lib/cloche]\n\n"
    "Exit status: 0, 1 when the server does not answer or knows no such sandbox, 2 when the command line is wrong.\n\n"
    "Examples:\n"
    "  cloche events -f --type killed\n"
    "  cloche events -n 1000 --json | jq -r 'select(.eventData.kill_reason == \"timeout\") | .sandboxId'";

struct events_options {
  bool follow, json;
  uint64_t lines;
  unsigned types;
  const char *sandbox, *team;
};

struct page {
  const struct events_options *options;
  bool hold;          /* newest first: printed when all are there */
  VEC(char *) events; /* owned */
};

/* ---- printing ---- */

static void print_clean(struct str text)
{
  for (size_t i = 0; i < text.n; i++) {
    unsigned char c = (unsigned char)text.p[i];
    putchar(c >= 0x20 && c != 0x7f ? c : '?');
  }
}

static void print_member(const struct json *data, const char *name, const char *shown)
{
  struct str text = json_text(json_get(data, name), STR_NONE);
  if (!text.n)
    return;
  printf("  %s=", shown);
  print_clean(text);
}

static void print_data(const struct json *data)
{
  int64_t ms = 0;
  print_member(data, "set_timeout", "until");
  if (json_given(json_get(data, "network_egress")))
    fputs("  network", stdout);
  if (!json_int(json_get(json_get(data, "execution"), "execution_time"), &ms))
    printf("  ran=%lld.%03llds", (long long)ms / 1000, (long long)ms % 1000);
  print_member(data, "kill_reason", "reason");
  struct str cause = json_text(json_get(data, "kill_cause"), STR_NONE);
  if (cause.n) {
    fputs("  ", stdout);
    print_clean(cause);
  }
}

static void print_event(const char *text, bool as_json)
{
  static const char prefix[] = "sandbox.lifecycle.";
  cleanup_arena struct arena a = ARENA_INIT(16 << 20);
  const struct json *e = as_json ? NULL : json_read(&a, str_of(text), JSON_REPAIR_UTF8, NULL);
  if (!e) {
    puts(text);
    return;
  }
  struct str type = json_text(json_get(e, "type"), STR("?")), id = json_text(json_get(e, "sandboxId"), STR("?"));
  printf("%.*s  %-12.*s  %-21.*s", STR_ARG(json_text(json_get(e, "timestamp"), STR("?"))),
         STR_ARG(str_starts(type, STR(prefix)) ? str_skip(type, sizeof(prefix) - 1) : type), STR_ARG(id));
  print_data(json_get(e, "eventData"));
  putchar('\n');
}

static void take_event(struct str packet, void *arg)
{
  struct page *p = arg;
  struct str json = wire_get(packet, W_EVENT);
  char *text = xstrndup(json.p ? json.p : "", json.n);
  if (p->hold) {
    vec_push(&p->events, text);
    return;
  }
  print_event(text, p->options->json);
  free(text);
}

static void print_held(struct page *p)
{
  for (size_t i = p->events.n; i-- > 0;) {
    print_event(p->events.p[i], p->options->json);
    free(p->events.p[i]);
  }
  vec_free(&p->events);
  fflush(stdout);
}

/* ---- asking ---- */

/* The latest ones where after is NULL, else those after it; how far the server looked is left in *seen. */
static int fetch(struct line *l, const struct events_options *o, const uint64_t *after, uint64_t *seen, struct err *err)
{
  struct page p = {.options = o, .hold = !after};
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_EVENT_LIST, 1, 0);
  if (o->team)
    wire_putz(&b, W_TEAM, o->team);
  if (o->sandbox)
    wire_putz(&b, W_ID, o->sandbox);
  wire_put_u64(&b, W_FLAGS, o->types);
  wire_put_u64(&b, W_COUNT, after ? LINES_MOST : o->lines);
  wire_put_u64(&b, W_MODE, after != NULL);
  wire_put_u64(&b, W_AFTER, after ? *after : 0);
  int r = admin_call(l, &b, take_event, &p, err);
  print_held(&p);
  if (!r)
    *seen = wire_u64(buf_str(&b), W_AFTER, 0);
  if (r == -ENOENT)
    err_set(err, r, "no sandbox '%s' is known here, nor any event of it", o->sandbox ? o->sandbox : "");
  return r;
}

static void wait_a_little(void)
{
  nanosleep(&(struct timespec){.tv_nsec = FOLLOW_NS}, NULL);
}

/* A server that is stopped and started again goes on where it was. */
static int follow(struct line *l, const struct events_options *o, uint64_t seen, struct err *err)
{
  for (;;) {
    wait_a_little();
    struct err why = ERR_NONE;
    int r = fetch(l, o, &seen, &seen, &why);
    while (r == -EPIPE || r == -ECONNREFUSED) {
      admin_close(l);
      wait_a_little();
      r = admin_reopen(l, &why) ? -ECONNREFUSED : 0;
    }
    if (r && r != -ENOENT) {
      *err = why;
      return r;
    }
  }
}

/* ---- the command line ---- */

static unsigned type_bit(const char *word)
{
  char name[64];
  snprintf(name, sizeof(name), "sandbox.lifecycle.%s", word);
  enum event_type type = event_type_of(str_of(word));
  type = type ? type : event_type_of(str_of(name));
  return type ? EVENT_BIT(type) : 0;
}

/* The value of an option that takes one; NULL: argv[*i] is not this option. */
static const char *value_of(int argc, char **argv, int *i, const char *name, struct err *err)
{
  if (strcmp(argv[*i], name) != 0)
    return NULL;
  if (*i + 1 < argc)
    return argv[++*i];
  err_set(err, -EINVAL, "%s needs a value; see cloche events --help", name);
  return "";
}

static int read_option(int argc, char **argv, int *i, struct events_options *o, struct err *err)
{
  const char *v;
  if (!strcmp(argv[*i], "-f") || !strcmp(argv[*i], "--follow")) {
    o->follow = true;
  } else if (!strcmp(argv[*i], "--json")) {
    o->json = true;
  } else if ((v = value_of(argc, argv, i, "--sandbox", err))) {
    o->sandbox = v;
  } else if ((v = value_of(argc, argv, i, "--team", err))) {
    o->team = v;
  } else if ((v = value_of(argc, argv, i, "--type", err))) {
    o->types |= type_bit(v);
    if (!err->code && !type_bit(v))
      err_set(err, -EINVAL, "no type '%s'; there are created, updated, paused, resumed, checkpointed and killed", v);
  } else if ((v = value_of(argc, argv, i, "-n", err)) || (v = value_of(argc, argv, i, "--lines", err))) {
    if (!err->code && (str_u64(str_of(v), &o->lines) || o->lines > LINES_MOST))
      err_set(err, -EINVAL, "%s must be from 0 to %d, not '%s'", argv[*i - 1], LINES_MOST, v);
  } else {
    err_set(err, -EINVAL, "unexpected word '%s'; see cloche events --help", argv[*i]);
  }
  return err->code;
}

int events_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  struct events_options o = {.lines = LINES_DEFAULT};
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
      return puts(help), 0;
  int opened = admin_open(&l, &argc, argv, &err);
  struct err wrong = ERR_NONE;
  for (int i = 1; i < argc && !wrong.code; i++)
    read_option(argc, argv, &i, &o, &wrong);
  uint64_t seen = 0;
  int r = wrong.code ? 0 : opened;
  if (!r && !wrong.code)
    r = fetch(&l, &o, NULL, &seen, &err);
  if (!r && !wrong.code && o.follow)
    r = follow(&l, &o, seen, &err);
  admin_close(&l);
  if (wrong.code)
    return usage_error("%s", wrong.msg);
  return r ? usage_error("%s", err.msg), 1 : 0;
}
