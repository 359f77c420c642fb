/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - `cloche bench`: options, samples, the table and the JSON file. See bench.h. */
#include "cli/bench/bench.h"

#include "cli/cli.h"
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

/* Every series there is, with what it should reach on two cores. */
static struct series table[] = {
    {"create", "create -> 201", "ms", 2, false, false, {0}, ""},
    {"create_tight", "create -> 201, one right after the other", "ms", 0, false, false, {0}, ""},
    {"create_echo", "create -> output of `echo`", "ms", 8, false, false, {0}, ""},
    {"create_node", "create -> output of `node -v`", "ms", 0, false, false, {0}, ""},
    {"create_run", "create -> first cell's result", "ms", 3, false, false, {0}, ""},
    {"run", "run 1+1, warm", "ms", 0.8, false, false, {0}, ""},
    {"run_spaced", "run 1+1, warm, 150 ms apart", "ms", 0, false, false, {0}, ""},
    {"context", "new Python context", "ms", 5, false, false, {0}, ""},
    {"context_first_cell", "first cell in it", "ms", 0, false, false, {0}, ""},
    {"first_byte", "first byte of a print", "ms", 3, false, false, {0}, ""},
    {"output", "10 MB of output in 1 KB prints", "MB/s", 50, true, false, {0}, ""},
    {"figure", "matplotlib figure with its chart", "ms", 0, false, false, {0}, ""},
    {"figure_savefig", "the same plot, savefig only", "ms", 0, false, false, {0}, ""},
    {"command_true", "command: true", "ms", 0, false, false, {0}, ""},
    {"command_echo", "command: echo", "ms", 0, false, false, {0}, ""},
    {"list", "list of 10,000 entries", "ms", 0, false, false, {0}, ""},
    {"upload", "upload", "GB/s", 1, true, false, {0}, ""},
    {"download", "download", "GB/s", 1, true, false, {0}, ""},
    {"volume_write", "write to a volume", "GB/s", 0, true, false, {0}, ""},
    {"volume_disk_write", "  to the box's own disk", "GB/s", 0, true, false, {0}, ""},
    {"volume_read", "read from a volume", "GB/s", 0, true, false, {0}, ""},
    {"volume_disk_read", "  from the box's own disk", "GB/s", 0, true, false, {0}, ""},
    {"content_upload", "file into a volume by HTTP", "GB/s", 1, true, false, {0}, ""},
    {"content_download", "file out of a volume by HTTP", "GB/s", 1, true, false, {0}, ""},
    {"pause", "pause of a box with 40 MB of its own", "ms", 150, false, false, {0}, ""},
    {"resume", "resume", "ms", 80, false, false, {0}, ""},
    {"fork", "fork of a running box, one copy", "ms", 200, false, false, {0}, ""},
    {"fork_first_cell", "the copy's first cell", "ms", 0, false, false, {0}, ""},
    {"rebuild", "rebuild of a template, all cached", "ms", 0, false, false, {0}, ""},
    {"rebuild_last", "rebuild with another last step", "ms", 2000, false, false, {0}, ""},
    {"rebuild_ready", "rebuild, its server running, all cached", "ms", 0, false, false, {0}, ""},
    {"rebuild_ready_last", "  with another last step", "ms", 2000, false, false, {0}, ""},
    {"create_ready", "create -> its template's server answers", "ms", 0, false, false, {0}, ""},
    {"contexts", "8 contexts in parallel", "cells/s", 2500, true, false, {0}, ""},
    {"burst", "100 creates at once, each with a numpy cell", "ms", 600, false, true, {0}, ""},
    {"sustained", "create + run + kill", "per s", 150, true, false, {0}, ""},
    {"http", "HTTP to a port in a box", "ms", 0, false, false, {0}, ""},
    {"http_rate", "HTTP to a port in a box, 32 connections", "req/s", 30000, true, false, {0}, ""},
    {"connections_rate", "HTTP to a server in a box, 5,000 connections", "req/s", 0, true, false, {0}, ""},
    {"connections_wait", "the longest wait among them", "ms", 0, false, true, {0}, ""},
};

static struct series *find(const char *name)
{
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    if (!strcmp(table[i].name, name))
      return &table[i];
  fprintf(stderr, "cloche: no series '%s'\n", name);
  abort();
}

void sample(const char *series, double value)
{
  struct series *s = find(series);
  vec_push(&s->samples, value);
}

void samples_note(const char *row, const char *why)
{
  snprintf(find(row)->note, sizeof(find(row)->note), "%s", why);
}

unsigned scaled(const struct bench *b, unsigned n)
{
  return MAX((unsigned)(n * b->scale), 3u);
}

void space_out(const struct bench *b)
{
  nanosleep(&(struct timespec){.tv_nsec = (long)b->pause_ms * 1000000}, NULL);
}

/* ---- telling ---- */

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double at(const double *sorted, size_t n, double part)
{
  return sorted[(size_t)ceil((double)(n - 1) * part)];
}

static void print_series(const struct series *s)
{
  size_t n = s->samples.n;
  if (!n)
    return;
  cleanup_free double *v = xmalloc(n * sizeof(*v));
  memcpy(v, s->samples.p, n * sizeof(*v));
  qsort(v, n, sizeof(*v), by_value);
  double told = s->worst ? v[n - 1] : at(v, n, 0.5);
  bool good = s->more ? told >= s->goal : told <= s->goal;
  char goal[32] = "";
  if (s->goal > 0)
    snprintf(goal, sizeof(goal), "%s %g", s->more ? ">=" : "<=", s->goal);
  printf("%-46s %8zu %10.3f %10.3f %10.3f %-8s %-10s %s\n", s->title, n, at(v, n, 0.5), at(v, n, s->more ? 0.05 : 0.95),
         at(v, n, s->more ? 0.01 : 0.99), s->unit, goal, s->goal > 0 ? good ? "met" : "missed" : "");
}

static void print_table(void)
{
  printf("%-46s %8s %10s %10s %10s %-8s %-10s %s\n", "WHAT", "SAMPLES", "P50", "P95", "P99", "UNIT", "GOAL P50", "");
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    print_series(&table[i]);
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    if (table[i].note[0])
      printf("%s: %s\n", table[i].title, table[i].note);
}

static void put_series(struct jw *w, const struct series *s)
{
  jw_open(w, '{');
  jw_key(w, "name");
  jw_z(w, s->name);
  jw_key(w, "title");
  jw_z(w, s->title);
  jw_key(w, "unit");
  jw_z(w, s->unit);
  jw_key(w, "note");
  jw_z(w, s->note);
  jw_key(w, "samples");
  jw_open(w, '[');
  for (size_t i = 0; i < s->samples.n; i++)
    jw_double(w, s->samples.p[i], 6);
  jw_close(w, ']');
  jw_close(w, '}');
}

static int write_json(const char *path, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT((size_t)64 << 20);
  struct jw w = JW(&b);
  jw_open(&w, '[');
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    if (table[i].samples.n || table[i].note[0])
      put_series(&w, &table[i]);
  jw_close(&w, ']');
  buf_addc(&b, '\n');
  int r = file_write_atomic(path, b.p, b.n, 0644);
  return r ? err_set(err, r, "%s: %s", path, strerrordesc_np(-r)) : 0;
}

/* ---- measuring ---- */

static bool wanted(const struct bench *b, const char *name)
{
  struct str rest = str_of(b->only), part;
  if (!b->only)
    return true;
  while (rest.n) {
    str_cut(rest, ',', &part, &rest);
    if (str_is(part, name))
      return true;
  }
  return false;
}

static int measure(struct bench *b, const struct row *rows, size_t n)
{
  int worst = 0;
  for (size_t i = 0; i < n; i++) {
    struct err err = ERR_NONE;
    if (!wanted(b, rows[i].name))
      continue;
    fprintf(stderr, "%s\n", rows[i].about);
    settle(b);
    if (rows[i].measure(b, &err)) {
      fprintf(stderr, "  %s\n", err.msg);
      worst = 1;
    }
  }
  return worst;
}

/* A server that has just started is still getting ready: its first boxes say nothing about the later ones. */
static int warm_up(struct bench *b, struct err *err)
{
  cleanup_client struct client c;
  client_open(&c, b);
  int64_t until = now_ns() + 30000000000;
  for (unsigned quick = 0; quick < 5 && now_ns() < until;) {
    struct bench_box g;
    int64_t began = now_ns();
    int r = bench_box_create(&c, &g, err);
    r = r ? r : bench_box_run(&c, &g, "1+1", NULL, NULL, err);
    quick = now_ns() - began < 200000000 ? quick + 1 : 0;
    if (r)
      return r;
    bench_box_kill(&c, &g, err);
    space_out(b);
  }
  return 0;
}

static int known_names(const struct bench *b)
{
  struct str rest = str_of(b->only), part;
  while (b->only && rest.n) {
    bool known = false;
    str_cut(rest, ',', &part, &rest);
    for (size_t i = 0; i < bench_nrows; i++)
      known |= str_is(part, bench_rows[i].name);
    for (size_t i = 0; i < bench_nloads; i++)
      known |= str_is(part, bench_loads[i].name);
    if (!known)
      return usage_error("bench: no measurement '" STR_FMT "'; 'cloche bench --help' lists them", STR_ARG(part));
  }
  return 0;
}

static int help(void)
{
  puts("cloche bench - measure an E2B-compatible server as a client sees it\n\n"
       "Usage: cloche bench [--url URL] [--key KEY] [--template NAME] [--only NAME,...] [--scale X] [--json FILE]\n"
       "       cloche bench --trace create [--url URL] [--key KEY]\n\n"
       "  --url URL        of the API and the sandboxes (E2B_API_URL, else http://127.0.0.1:3000)\n"
       "  --sandbox-url U  of the sandboxes, when it is another one (E2B_SANDBOX_URL)\n"
       "  --domain NAME    reach sandboxes as https://PORT-ID.NAME instead; '' = the domain the server tells\n"
       "  --key KEY        API key (better in E2B_API_KEY)\n"
       "  --template NAME  [code-interpreter-v1]\n"
       "  --only NAME,...  only these measurements\n"
       "  --scale X        times the usual number of samples [1]\n"
       "  --pause MS       between spaced events [150]\n"
       "  --settle S       wait up to S seconds before each measurement until this machine is idle [10]; 0 = never\n"
       "  --json FILE      every sample\n"
       "  --trace create   where the time of one create goes (Cloche servers)\n\nMeasurements:");
  for (size_t i = 0; i < bench_nrows; i++)
    printf("  %-12s %s\n", bench_rows[i].name, bench_rows[i].about);
  for (size_t i = 0; i < bench_nloads; i++)
    printf("  %-12s %s\n", bench_loads[i].name, bench_loads[i].about);
  return 0;
}

struct choices {
  const char *url, *sandbox_url, *trace;
  bool help;
};

static const char *option_name(const struct option *known, int letter)
{
  while (known->name && known->val != letter)
    known++;
  return known->name;
}

static int options(struct bench *b, struct choices *c, int argc, char **argv)
{
  static const struct option known[] = {{"url", required_argument, NULL, 'u'},
                                        {"sandbox-url", required_argument, NULL, 'U'},
                                        {"domain", required_argument, NULL, 'd'},
                                        {"key", required_argument, NULL, 'k'},
                                        {"template", required_argument, NULL, 't'},
                                        {"only", required_argument, NULL, 'o'},
                                        {"scale", required_argument, NULL, 's'},
                                        {"pause", required_argument, NULL, 'p'},
                                        {"json", required_argument, NULL, 'j'},
                                        {"trace", required_argument, NULL, 'T'},
                                        {"settle", required_argument, NULL, 'S'},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};
  uint64_t n;
  optind = 1;
  for (int o; (o = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
    if (o == 'u')
      c->url = optarg;
    else if (o == 'U')
      c->sandbox_url = optarg;
    else if (o == 'd')
      b->domain = optarg;
    else if (o == 'k')
      b->key = optarg;
    else if (o == 't')
      b->template = optarg;
    else if (o == 'o')
      b->only = optarg;
    else if (o == 'j')
      b->json = optarg;
    else if (o == 'T')
      c->trace = optarg;
    else if (o == 'h')
      c->help = true;
    else if (o == 's' && (b->scale = strtod(optarg, NULL)) > 0 && b->scale <= 100)
      continue;
    else if (o == 'p' && !str_u64(str_of(optarg), &n) && n < 1000)
      b->pause_ms = (unsigned)n;
    else if (o == 'S' && !str_u64(str_of(optarg), &n) && n <= 600)
      b->settle_s = (unsigned)n;
    else
      return o == '?' ? usage_error("bench: see 'cloche bench --help'")
                      : usage_error("bench: '%s' is not a good value for --%s; see 'cloche bench --help'", optarg,
                                    option_name(known, o));
  }
  return optind < argc ? usage_error("bench: unexpected word '%s'", argv[optind]) : 0;
}

int bench_main(int argc, char **argv)
{
  struct bench b = {
      .template = "code-interpreter-v1", .scale = 1, .pause_ms = 150, .settle_s = 10, .key = getenv("E2B_API_KEY")};
  struct choices c = {.url = getenv("E2B_API_URL"), .sandbox_url = getenv("E2B_SANDBOX_URL")};
  struct err err = ERR_NONE;
  int r = options(&b, &c, argc, argv);
  if (r || c.help)
    return r ? r : help();
  if ((r = known_names(&b)))
    return r;
  if (!b.key)
    return usage_error("bench: no API key; give --key or set E2B_API_KEY");
  const char *url = c.url ? c.url : "http://127.0.0.1:3000";
  if (origin_parse(&b.api, url, &err) || origin_parse(&b.edge, c.sandbox_url ? c.sandbox_url : url, &err))
    return usage_error("bench: %s", err.msg);
  if (c.trace)
    return strcmp(c.trace, "create") ? usage_error("bench: only 'create' can be traced, not '%s'", c.trace)
                                     : trace_create(&b);
  if (warm_up(&b, &err))
    return usage_error("bench: %s", err.msg), 1;
  r = measure(&b, bench_rows, bench_nrows) | measure(&b, bench_loads, bench_nloads);
  print_table();
  if (b.json && write_json(b.json, &err))
    return usage_error("bench: %s", err.msg), 1;
  return r;
}
