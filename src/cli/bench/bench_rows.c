/* SPDX-License-Identifier: Apache-2.0 */
/* bench_rows.c - what one client waits for: times of single operations, spaced 150 ms apart as a person's or an agent's
 * are, and where it tells more also back to back. */
#include "cli/bench/bench.h"

#include <stdio.h>

/* A box for the length of a scope. */
struct stay {
  struct client client;
  struct bench_box box;
};

static void stay_end(struct stay *s)
{
  bench_box_kill(&s->client, &s->box, NULL);
  client_close(&s->client);
}
#define cleanup_stay __attribute__((cleanup(stay_end)))

static int stay_begin(struct stay *s, const struct bench *b, struct err *err)
{
  client_open(&s->client, b);
  s->box = (struct bench_box){.id = ""};
  return bench_box_create(&s->client, &s->box, err);
}

/* ---- create ---- */

static int create_times(struct bench *b, struct err *err)
{
  cleanup_client struct client c;
  client_open(&c, b);
  int r = 0;
  for (unsigned spaced = 2; spaced-- > 0 && !r;)
    for (unsigned i = 0; i < scaled(b, 40) && !r; i++) {
      struct bench_box g;
      if (spaced)
        space_out(b);
      r = bench_box_create(&c, &g, err);
      if (!r)
        sample(spaced ? "create" : "create_tight", call_ms(&c.call));
      r = r ? r : bench_box_kill(&c, &g, err);
    }
  return r;
}

/* From the create's first byte to an answer's last (or to the first output of a command). */
static int create_first(struct bench *b, const char *series,
                        int (*first)(struct client *, struct bench_box *, struct err *), struct err *err)
{
  cleanup_client struct client c;
  client_open(&c, b);
  int r = 0;
  for (unsigned i = 0; i < scaled(b, 25) && !r; i++) {
    struct bench_box g;
    space_out(b);
    r = bench_box_create(&c, &g, err);
    int64_t began = c.call.began_ns;
    r = r ? r : first(&c, &g, err);
    if (!r)
      sample(series, (double)((c.call.seen_ns ? c.call.seen_ns : c.call.ended_ns) - began) / 1e6);
    struct err more = ERR_NONE;
    bench_box_kill(&c, &g, &more);
  }
  return r;
}

static int first_echo(struct client *c, struct bench_box *g, struct err *err)
{
  return bench_box_command(c, g, "echo hi", "\"stdout\"", err);
}

static int first_node(struct client *c, struct bench_box *g, struct err *err)
{
  return bench_box_command(c, g, "node -v", "\"stdout\"", err);
}

static int first_cell(struct client *c, struct bench_box *g, struct err *err)
{
  return bench_box_run(c, g, "1+1", NULL, "\"2\"", err);
}

static int create_echo(struct bench *b, struct err *err)
{
  return create_first(b, "create_echo", first_echo, err);
}

static int create_node(struct bench *b, struct err *err)
{
  return create_first(b, "create_node", first_node, err);
}

static int create_run(struct bench *b, struct err *err)
{
  cleanup_stay struct stay s;
  int r = stay_begin(&s, b, err);
  r = r ? r
        : bench_box_run(&s.client, &s.box,
                        "import sys; [n for n in ('numpy', 'pandas', 'matplotlib') if n not in sys.modules]", NULL,
                        "\"[]\"", err);
  if (r == -EBADMSG)
    samples_note("create_run", "numpy, pandas or matplotlib is not loaded when a box begins");
  return create_first(b, "create_run", first_cell, err);
}

/* ---- cells ---- */

static int run_times(struct bench *b, struct err *err)
{
  cleanup_stay struct stay s;
  int r = stay_begin(&s, b, err);
  for (unsigned i = 0; i < 5 && !r; i++)
    r = bench_box_run(&s.client, &s.box, "1+1", NULL, "\"2\"", err);
  for (unsigned i = 0; i < scaled(b, 40) && !r; i++) {
    space_out(b);
    r = bench_box_run(&s.client, &s.box, "1+1", NULL, "\"2\"", err);
    sample("run_spaced", call_ms(&s.client.call));
  }
  for (unsigned i = 0; i < scaled(b, 1000) && !r; i++) {
    r = bench_box_run(&s.client, &s.box, "1+1", NULL, "\"2\"", err);
    sample("run", call_ms(&s.client.call));
  }
  return r;
}

static int context_times(struct bench *b, struct err *err)
{
  cleanup_stay struct stay s;
  int r = stay_begin(&s, b, err);
  for (unsigned i = 0; i < scaled(b, 30) && !r; i++) {
    char id[BOX_ID_SIZE];
    space_out(b);
    r = bench_box_context(&s.client, &s.box, id, err);
    if (!r)
      sample("context", call_ms(&s.client.call));
    r = r ? r : bench_box_run(&s.client, &s.box, "1+1", id, "\"2\"", err);
    if (!r)
      sample("context_first_cell", call_ms(&s.client.call));
    r = r ? r : bench_box_context_end(&s.client, &s.box, id, err);
  }
  return r;
}

static int first_byte(struct bench *b, struct err *err)
{
  cleanup_stay struct stay s;
  int r = stay_begin(&s, b, err);
  for (unsigned i = 0; i < scaled(b, 15) && !r; i++) {
    s.client.call.watch = "\"stdout\"";
    r = bench_box_run(&s.client, &s.box, "import time; print('a'); time.sleep(0.3)", NULL, "\"stdout\"", err);
    if (!r)
      sample("first_byte", (double)(s.client.call.seen_ns - s.client.call.began_ns) / 1e6);
    s.client.call.watch = NULL;
  }
  return r;
}

/* Bytes of standard output in an answer: one JSON event per line. */
static size_t stdout_bytes(struct str answer)
{
  size_t n = 0;
  struct str line;
  while (answer.n) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 22);
    str_cut(answer, '\n', &line, &answer);
    struct json *event = json_read(&a, line, 0, NULL);
    if (str_is(json_text(json_get(event, "type"), STR("")), "stdout"))
      n += json_text(json_get(event, "text"), STR("")).n;
  }
  return n;
}

#define OUTPUT_BYTES (10240u * 1024)
static int output_rate(struct bench *b, struct err *err)
{
  cleanup_stay struct stay s;
  int r = stay_begin(&s, b, err);
  for (unsigned i = 0; i < scaled(b, 5) && !r; i++) {
    r = bench_box_run(&s.client, &s.box, "for _ in range(10240): print('x' * 1023)", NULL, "\"stdout\"", err);
    size_t n = r ? 0 : stdout_bytes(buf_str(&s.client.call.answer));
    if (!r && n != OUTPUT_BYTES)
      r = err_set(err, -EBADMSG, "of %u bytes %zu came", OUTPUT_BYTES, n);
    if (!r)
      sample("output", (double)OUTPUT_BYTES / 1e6 / (call_ms(&s.client.call) / 1e3));
  }
  return r;
}

/* ---- figures ---- */

#define PLOT                                                                                                           \
  "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2, 3, 4], [10, 20, 25, "                     \
  "30])\nax.set_title('t')\n"
static int figure_times(struct bench *b, struct err *err)
{
  static const char show[] = PLOT "plt.show()";
  static const char save[] =
      PLOT "import io\nfig.savefig(io.BytesIO(), format='png', dpi='figure', bbox_inches='tight')\nplt.close(fig)\n1";
  cleanup_stay struct stay s;
  int r = stay_begin(&s, b, err);
  for (unsigned i = 0; i < scaled(b, 20) + 2 && !r; i++) {
    r = bench_box_run(&s.client, &s.box, save, NULL, "\"1\"", err);
    if (!r && i >= 2)
      sample("figure_savefig", call_ms(&s.client.call));
    r = r ? r : bench_box_run(&s.client, &s.box, show, NULL, "\"png\"", err);
    if (!r && i >= 2)
      sample("figure", call_ms(&s.client.call));
  }
  return r;
}

/* ---- commands and files ---- */

static int command_times(struct bench *b, struct err *err)
{
  cleanup_stay struct stay s;
  int r = stay_begin(&s, b, err);
  for (unsigned i = 0; i < scaled(b, 40) && !r; i++) {
    space_out(b);
    r = bench_box_command(&s.client, &s.box, "true", "\"end\"", err);
    if (!r)
      sample("command_true", call_ms(&s.client.call));
    r = r ? r : bench_box_command(&s.client, &s.box, "echo hi", "\"stdout\"", err);
    if (!r)
      sample("command_echo", call_ms(&s.client.call));
  }
  return r;
}

static int list_times(struct bench *b, struct err *err)
{
  cleanup_stay struct stay s;
  int r = stay_begin(&s, b, err);
  r = r ? r
        : bench_box_command(&s.client, &s.box,
                            "mkdir /tmp/many && cd /tmp/many && seq 10000 | xargs touch && echo made", "\"stdout\"",
                            err);
  for (unsigned i = 0; i < scaled(b, 10) && !r; i++) {
    cleanup_call struct call k = {.method = "POST",
                                  .path = "/filesystem.Filesystem/ListDir",
                                  .body = STR("{\"path\":\"/tmp/many\",\"depth\":1}")};
    k.headers = "Content-Type: application/json\r\nConnect-Protocol-Version: 1\r\nAuthorization: Basic dXNlcjo=\r\n";
    r = bench_box_request(&s.client, &s.box, AGENT_PORT, &k, err);
    if (!r && str_search(buf_str(&k.answer), STR("\"10000\"")) < 0)
      r = err_set(err, -EBADMSG, "the listing has no entry 10000");
    if (!r)
      sample("list", call_ms(&k));
  }
  return r;
}

#define FILE_BYTES ((size_t)256 << 20)
static char *file_bytes(void)
{
  char *bytes = xmalloc(FILE_BYTES);
  for (size_t i = 0; i < FILE_BYTES; i += 8)
    memcpy(bytes + i, &(uint64_t){i * 0x9e3779b97f4a7c15u}, 8);
  return bytes;
}

/* A new file each time: ext4 writes one that replaces another to the disk when it is closed. */
static int file_once(struct stay *s, struct str bytes, struct err *err)
{
  cleanup_call struct call k = {.method = "POST", .path = "/files?path=/tmp/big&username=user", .body = bytes};
  k.headers = "Content-Type: application/octet-stream\r\n";
  int r = bench_box_request(&s->client, &s->box, AGENT_PORT, &k, err);
  if (!r)
    sample("upload", (double)FILE_BYTES / 1e9 / (call_ms(&k) / 1e3));
  k.method = "GET";
  k.headers = NULL;
  k.count_only = true;
  r = r ? r : bench_box_request(&s->client, &s->box, AGENT_PORT, &k, err);
  if (!r && k.bytes != FILE_BYTES)
    r = err_set(err, -EBADMSG, "%llu of %zu bytes came back", (unsigned long long)k.bytes, FILE_BYTES);
  if (!r)
    sample("download", (double)FILE_BYTES / 1e9 / (call_ms(&k) / 1e3));
  return r ? r : bench_box_command(&s->client, &s->box, "rm /tmp/big; echo gone", "\"stdout\"", err);
}

static int file_times(struct bench *b, struct err *err)
{
  cleanup_stay struct stay s;
  int r = stay_begin(&s, b, err);
  cleanup_free char *bytes = file_bytes();
  for (unsigned i = 0; i < scaled(b, 4) && !r; i++)
    r = file_once(&s, str_make(bytes, FILE_BYTES), err);
  return r;
}

/* The same bytes to the box's own disk and to a volume, by turns. */
static int volume_once(struct stay *s, const char *dir, const char *which, struct err *err)
{
  char command[256], series[40];
  snprintf(command, sizeof(command), "dd if=/dev/zero of=%s/big bs=1M count=256 2>&1", dir);
  int r = bench_box_command(&s->client, &s->box, command, "\"stdout\"", err);
  snprintf(series, sizeof(series), "%s_write", which);
  if (!r)
    sample(series, 0.268 / (call_ms(&s->client.call) / 1e3));
  snprintf(command, sizeof(command), "dd if=%s/big of=/dev/null bs=1M 2>&1", dir);
  r = r ? r : bench_box_command(&s->client, &s->box, command, "\"stdout\"", err);
  snprintf(series, sizeof(series), "%s_read", which);
  if (!r)
    sample(series, 0.268 / (call_ms(&s->client.call) / 1e3));
  snprintf(command, sizeof(command), "rm %s/big; sync; echo gone", dir);
  return r ? r : bench_box_command(&s->client, &s->box, command, "\"stdout\"", err);
}

static int volume_times(struct bench *b, struct err *err)
{
  char name[48];
  struct bench_volume volume;
  cleanup_client struct client c;
  client_open(&c, b);
  snprintf(name, sizeof(name), "bench-%lld", (long long)clock_wall_us());
  int r = bench_volume_create(&c, name, &volume, err);
  if (r)
    return r;
  struct stay s = {.box = {.id = ""}};
  client_open(&s.client, b);
  r = bench_box_create_with(&s.client, &s.box, name, err);
  for (unsigned i = 0; i < scaled(b, 4) && !r; i++) {
    r = volume_once(&s, "/home/user", "volume_disk", err);
    r = r ? r : volume_once(&s, BENCH_VOLUME, "volume", err);
  }
  stay_end(&s);
  int removed = bench_volume_remove(&c, &volume, r ? NULL : err);
  return r ? r : removed;
}

static int content_once(struct client *c, const struct bench_volume *v, struct str bytes, struct err *err)
{
  int r = bench_volume_file(c, v, bytes, err);
  if (!r)
    sample("content_upload", (double)FILE_BYTES / 1e9 / (call_ms(&c->call) / 1e3));
  r = r ? r : bench_volume_file(c, v, STR_NONE, err);
  if (!r && c->call.bytes != FILE_BYTES)
    r = err_set(err, -EBADMSG, "%llu of %zu bytes came back", (unsigned long long)c->call.bytes, FILE_BYTES);
  if (!r)
    sample("content_download", (double)FILE_BYTES / 1e9 / (call_ms(&c->call) / 1e3));
  return r ? r : bench_volume_unlink(c, v, err);
}

static int content_times(struct bench *b, struct err *err)
{
  char name[48];
  struct bench_volume volume;
  cleanup_client struct client c;
  client_open(&c, b);
  snprintf(name, sizeof(name), "bench-content-%lld", (long long)clock_wall_us());
  int r = bench_volume_create(&c, name, &volume, err);
  if (r)
    return r;
  cleanup_free char *bytes = file_bytes();
  for (unsigned i = 0; i < scaled(b, 4) && !r; i++)
    r = content_once(&c, &volume, str_make(bytes, FILE_BYTES), err);
  int removed = bench_volume_remove(&c, &volume, r ? NULL : err);
  return r ? r : removed;
}

/* ---- sleep ---- */

static int pause_times(struct bench *b, struct err *err)
{
  cleanup_stay struct stay s;
  int r = stay_begin(&s, b, err);
  r = r ? r
        : bench_box_run(&s.client, &s.box, "import os; held = bytearray(os.urandom(40_000_000)); x = 41", NULL, NULL,
                        err);
  for (unsigned i = 0; i < scaled(b, 10) && !r; i++) {
    space_out(b);
    r = bench_box_pause(&s.client, &s.box, err);
    if (!r)
      sample("pause", call_ms(&s.client.call));
    space_out(b);
    r = r ? r : bench_box_resume(&s.client, &s.box, err);
    if (!r)
      sample("resume", call_ms(&s.client.call));
    r = r ? r : bench_box_run(&s.client, &s.box, "x + 1", NULL, "\"42\"", err);
  }
  return r;
}

static int fork_times(struct bench *b, struct err *err)
{
  cleanup_stay struct stay s;
  int r = stay_begin(&s, b, err);
  r = r ? r
        : bench_box_run(&s.client, &s.box, "import os; held = bytearray(os.urandom(40_000_000)); x = 41", NULL, NULL,
                        err);
  for (unsigned i = 0; i < scaled(b, 10) && !r; i++) {
    struct bench_box copy;
    space_out(b);
    r = bench_box_fork(&s.client, &s.box, &copy, err);
    if (!r)
      sample("fork", call_ms(&s.client.call));
    r = r ? r : bench_box_run(&s.client, &copy, "x + 1", NULL, "\"42\"", err);
    if (!r)
      sample("fork_first_cell", call_ms(&s.client.call));
    int killed = bench_box_kill(&s.client, &copy, r ? NULL : err);
    r = r ? r : killed;
  }
  return r;
}

const struct row bench_rows[] = {
    {"create", "create a box", create_times},
    {"create_echo", "create -> output of `echo`", create_echo},
    {"create_node", "create -> output of `node -v`", create_node},
    {"create_run", "create -> first cell's result", create_run},
    {"run", "run `1+1` in a warm box", run_times},
    {"context", "a new Python context", context_times},
    {"first_byte", "first byte of a print", first_byte},
    {"output", "10 MB of output in 1 KB prints", output_rate},
    {"figure", "a matplotlib figure with its chart", figure_times},
    {"command", "a command in a warm box", command_times},
    {"list", "a directory of 10,000 entries", list_times},
    {"files", "upload and download", file_times},
    {"volume", "a volume beside the box's own disk", volume_times},
    {"content", "files of a volume by HTTP", content_times},
    {"pause", "pause and resume", pause_times},
    {"fork", "fork a running box", fork_times},
    {"rebuild", "template builds, and a box with its server running", build_times},
};
const size_t bench_nrows = ARRAY_LEN(bench_rows);
