/* SPDX-License-Identifier: Apache-2.0 */
/* audit_command.c - `cloche audit`: the audit log of this machine's server, read from its files; the server need not
 * run. Texts that clients chose are shown without what could move a terminal's cursor. */
#include "cli/cli.h"

#include "audit/audit_config.h"
#include "audit/audit_file.h"
#include "cli/config.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define FOLLOW_NS     250000000
#define LINES_DEFAULT 20
#define LINES_MOST    1000000
#define LINE_SIZE     ((size_t)64 << 10)

static const char help[] =
    "cloche audit - who asked the API for what, when, from where, and what the answer was\n\n"
    "Usage: cloche audit [-f] [-n LINES] [--team ID] [--key ID] [--id ID] [--refused] [--since TIME] [--json]\n"
    "                    [--data DIR]\n\n"
    "Shows the latest records of the audit log, oldest first. What is recorded is said by the setting `audit`; the\n"
    "files are in <data>/audit/log (docs/audit.md).\n\n"
    "  -f, --follow   go on with what is recorded from now on, until interrupted\n"
    "  -n, --lines N  so many of the latest records, 0 to 1000000 [20]\n"
    "  --team ID      only of this team ('cloche team list' names them)\n"
    "  --key ID       only by this key or access token ('cloche key list' names them)\n"
    "  --id ID        only about this sandbox, template, volume, secret, webhook or key\n"
    "  --refused      only those that were answered with 4xx or 5xx\n"
    "  --since TIME   only from then on, as 2026-01-02T03:04:05Z\n"
    "  --json         the lines as they are in the files\n"
    "  --data DIR     the server's data directory [/var/lib/cloche]\n\n"
    "Exit status: 0, 1 when there is no audit log, 2 when the command line is wrong.\n\n"
    "Examples:\n"
    "  cloche audit --refused -n 100\n"
    "  cloche audit -n 1000000 --json | jq -r 'select(.status == 401) | .client'";

struct audit_options {
  bool follow, json, refused;
  uint64_t lines;
  const char *team, *key, *id, *data;
  int64_t since_us;
};

/* ---- choosing ---- */

static bool is(const struct json *v, const char *name, const char *wanted)
{
  return !wanted || str_is(json_text(json_get(v, name), STR_NONE), wanted);
}

static bool meant(const struct json *v, const struct audit_options *o)
{
  int64_t status = 0, when = 0;
  json_int(json_get(v, "status"), &status);
  if (o->since_us && (clock_parse(json_text(json_get(v, "time"), STR_NONE), &when) || when < o->since_us))
    return false;
  bool about = !o->id || is(v, "id", o->id) || is(v, "second", o->id) || is(v, "made", o->id);
  return about && is(v, "team", o->team) && is(v, "key", o->key) && (!o->refused || status >= 400);
}

/* ---- printing ---- */

static void print_clean(struct str text)
{
  cleanup_free char *clean = xstrndup(text.p ? text.p : "", text.n);
  text_blank_controls(clean, text.n);
  fwrite(clean, 1, text.n, stdout);
}

static void print_member(const struct json *v, const char *name, const char *shown)
{
  struct str text = json_text(json_get(v, name), STR_NONE);
  if (!text.n)
    return;
  printf("  %s=", shown);
  print_clean(text);
}

static void print_record(const struct json *v)
{
  static const char *const members[] = {"id", "second", "made", "team", "teamName", "key", "forwardedFor", "userAgent"};
  int64_t status = 0, n = 0;
  json_int(json_get(v, "status"), &status);
  printf("%.*s  %lld  ", STR_ARG(json_text(json_get(v, "time"), STR("?"))), (long long)status);
  print_clean(json_text(json_get(v, "client"), STR("?")));
  printf("  %.*s  ", STR_ARG(json_text(json_get(v, "who"), STR("?"))));
  print_clean(json_text(json_get(v, "method"), STR("?")));
  fputs(" /", stdout);
  print_clean(json_text(json_get(v, "route"), STR("?")));
  for (size_t i = 0; i < ARRAY_LEN(members); i++)
    print_member(v, members[i], members[i]);
  if (!json_int(json_get(v, "lost"), &n))
    printf("  lost=%lld", (long long)n);
  if (!json_int(json_get(v, "leftOut"), &n))
    printf("  leftOut=%lld", (long long)n);
  putchar('\n');
}

/* ---- reading ---- */

/* The latest lines that are meant, as a ring. */
struct tail {
  const struct audit_options *options;
  char **lines; /* `room` of them, owned */
  size_t room, n, next;
};

/* As it is in the file, it may be from before control characters were left out. */
static void print_line(char *line, const struct audit_options *o)
{
  cleanup_arena struct arena a = ARENA_INIT(4 << 20);
  const struct json *v = o->json ? NULL : json_read(&a, str_of(line), JSON_REPAIR_UTF8, NULL);
  if (v)
    print_record(v);
  else
    text_blank_controls(line, strlen(line)), puts(line);
}

static void tail_add(struct tail *t, struct str line, bool at_once)
{
  cleanup_arena struct arena a = ARENA_INIT(4 << 20);
  const struct json *v = json_read(&a, line, JSON_REPAIR_UTF8, NULL);
  if (!v || !meant(v, t->options)) /* a line that a crash cut is no record */
    return;
  char *copy = xstrndup(line.p, line.n);
  if (at_once || !t->room) {
    if (at_once)
      print_line(copy, t->options);
    free(copy);
    return;
  }
  free(t->lines[t->next]);
  t->lines[t->next] = copy;
  t->next = (t->next + 1) % t->room;
  t->n = MIN(t->n + 1, t->room);
}

static char *tail_first(const struct tail *t)
{
  return t->n ? t->lines[(t->next + t->room - t->n) % t->room] : NULL;
}

static char *tail_pop(struct tail *t)
{
  char *line = steal(&t->lines[(t->next + t->room - t->n) % t->room]);
  t->n--;
  return line;
}

/* Both sets as one, the latest of them. A line begins with its time, so lines sort as their times do. */
static void tails_print(struct tail *a, struct tail *b)
{
  size_t room = a->room;
  while (a->n || b->n) {
    const char *x = tail_first(a), *y = tail_first(b);
    size_t left = a->n + b->n;
    char *line = tail_pop(!y || (x && strcmp(x, y) <= 0) ? a : b);
    if (left <= room)
      print_line(line, a->options);
    free(line);
  }
  fflush(stdout);
}

/* Whole lines; a half one at the end is left for the next call. */
static void read_lines(int fd, struct buf *rest, struct tail *t, bool at_once)
{
  char chunk[16384];
  for (ssize_t k; (k = read(fd, chunk, sizeof(chunk))) > 0;) {
    if (buf_add(rest, chunk, (size_t)k)) /* a line longer than any that is written */
      buf_clear(rest);
    struct str line, left = buf_str(rest);
    size_t used = 0;
    while (str_cut(left, '\n', &line, &left)) {
      tail_add(t, line, at_once);
      used = rest->n - left.n;
    }
    buf_drop(rest, used);
  }
}

/* One set of files. */
struct reader {
  const char *set;
  int dir, fd; /* fd: the file that is written to; -1: there is none yet */
  struct buf rest;
  struct tail tail;
};

static int read_set(struct reader *r)
{
  struct audit_names all = {0};
  int failed = audit_file_names(r->dir, r->set, &all);
  for (size_t i = 0; i < all.names.n; i++) {
    if (r->fd >= 0)
      close(r->fd);
    buf_clear(&r->rest);
    r->fd = openat(r->dir, all.names.p[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (r->fd >= 0)
      read_lines(r->fd, &r->rest, &r->tail, false);
  }
  audit_names_free(&all);
  return failed;
}

static void follow_set(struct reader *r)
{
  struct stat now, open_one;
  char name[AUDIT_FILE_NAME];
  audit_file_current(r->set, name);
  read_lines(r->fd, &r->rest, &r->tail, true);
  while (!fstatat(r->dir, name, &now, 0) &&
         (r->fd < 0 || (!fstat(r->fd, &open_one) && now.st_ino != open_one.st_ino))) {
    read_lines(r->fd, &r->rest, &r->tail, true); /* what came between the last read and the rotation */
    if (r->fd >= 0)
      close(r->fd);
    buf_clear(&r->rest);
    if ((r->fd = openat(r->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) < 0)
      return;
    read_lines(r->fd, &r->rest, &r->tail, true);
  }
}

_Noreturn static void follow(struct reader *a, struct reader *b)
{
  for (;;) {
    follow_set(a);
    follow_set(b);
    fflush(stdout);
    nanosleep(&(struct timespec){.tv_nsec = FOLLOW_NS}, NULL);
  }
}

static struct reader reader_of(const char *set, int dir, const struct audit_options *o)
{
  return (struct reader){
      .set = set,
      .dir = dir,
      .fd = -1,
      .rest = BUF_INIT(LINE_SIZE * 2),
      .tail = {.options = o, .room = (size_t)o->lines, .lines = xcalloc((size_t)o->lines + 1, sizeof(char *))}};
}

static void reader_close(struct reader *r)
{
  if (r->fd >= 0)
    close(r->fd);
  buf_free(&r->rest);
  free(r->tail.lines);
}

static int show(const struct audit_options *o, struct err *err)
{
  cleanup_free char *path = xasprintf("%s/%s/%s", o->data, AUDIT_TOP_DIR, AUDIT_LOG_DIR);
  cleanup_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct reader all = reader_of(AUDIT_PROVEN, dir, o), refused = reader_of(AUDIT_REFUSED, dir, o);
  if (dir < 0 || read_set(&all) || read_set(&refused))
    err_set(err, -errno, "%s: %s; is `audit` on, and `audit_to` files?", path, strerrordesc_np(errno));
  tails_print(&all.tail, &refused.tail);
  if (!err->code && o->follow)
    follow(&all, &refused);
  reader_close(&all);
  reader_close(&refused);
  return err->code;
}

/* ---- the command line ---- */

static const char *value_of(int argc, char **argv, int *i, const char *name, struct err *err)
{
  if (strcmp(argv[*i], name) != 0)
    return NULL;
  if (*i + 1 < argc)
    return argv[++*i];
  err_set(err, -EINVAL, "%s needs a value; see cloche audit --help", name);
  return "";
}

static int read_option(int argc, char **argv, int *i, struct audit_options *o, struct err *err)
{
  const struct {
    const char *name, **at;
  } texts[] = {{"--team", &o->team}, {"--key", &o->key}, {"--id", &o->id}, {"--data", &o->data}};
  const struct {
    const char *name, *brief;
    bool *at;
  } flags[] = {{"--follow", "-f", &o->follow}, {"--json", "--json", &o->json}, {"--refused", "--refused", &o->refused}};
  const char *v;
  for (size_t k = 0; k < ARRAY_LEN(flags); k++)
    if (!strcmp(argv[*i], flags[k].name) || !strcmp(argv[*i], flags[k].brief))
      return *flags[k].at = true, 0;
  for (size_t k = 0; k < ARRAY_LEN(texts); k++)
    if ((v = value_of(argc, argv, i, texts[k].name, err)))
      return *texts[k].at = v, err->code;
  if ((v = value_of(argc, argv, i, "--since", err))) {
    if (!err->code && clock_parse(str_of(v), &o->since_us))
      err_set(err, -EINVAL, "--since needs a time as 2026-01-02T03:04:05Z, not '%s'", v);
  } else if ((v = value_of(argc, argv, i, "-n", err)) || (v = value_of(argc, argv, i, "--lines", err))) {
    if (!err->code && (str_u64(str_of(v), &o->lines) || o->lines > LINES_MOST))
      err_set(err, -EINVAL, "%s must be from 0 to %d, not '%s'", argv[*i - 1], LINES_MOST, v);
  } else {
    err_set(err, -EINVAL, "unexpected word '%s'; see cloche audit --help", argv[*i]);
  }
  return err->code;
}

int audit_command_main(int argc, char **argv)
{
  struct err err = ERR_NONE;
  const char *data = getenv("CLOCHE_DATA");
  struct audit_options o = {.lines = LINES_DEFAULT, .data = data && data[0] ? data : DATA_DEFAULT};
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
      return puts(help), 0;
  for (int i = 1; i < argc; i++)
    if (read_option(argc, argv, &i, &o, &err))
      return usage_error("%s", err.msg);
  return show(&o, &err) ? usage_error("%s", err.msg), 1 : 0;
}
