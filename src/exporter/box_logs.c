/* SPDX-License-Identifier: Apache-2.0 */
/* box_logs.c - see box_logs.h. */
#include "exporter/box_logs.h"

#include "exporter/otlp_json.h"
#include "wire/log_entry.h"
#include "wire/logring.h"
#include "wire/sizes.h"
#include "wire/wire.h"
#include <stdio.h>
#include <sys/stat.h>

#define RINGS_MAX   4096               /* boxes that are followed at once; the role may have some descriptors more */
#define OVER_MAX    64                 /* of boxes that are over, whose rings take memory until they are read */
#define OVER_US     30000000           /* and so long at most */
#define PIECE       ((size_t)64 << 10) /* read of one ring at a time */
#define ROUND_BYTES ((size_t)4 << 20)  /* read of all rings, and written of them, in one round */
#define BODY_MAX    ((size_t)16 << 20)
#define WAITING_MAX 16 /* requests; with more of them the collector is slow, and logs leave room for the rest */

struct ring {
  char id[BOX_ID_SIZE], team[UUID_SIZE];
  int fd;
  uint64_t at, lost;
  int64_t from_us; /* lines from then on */
  int64_t over_us; /* when the box ended, or its warden; 0 = it lives */
  bool empty;      /* nothing new was found */
  bool orphan;     /* it is the warden that has gone: the next one may name the box again */
};

struct box_logs {
  struct delivery *delivery;
  const struct exporter_config *config;
  const char *host;
  uv_timer_t timer;
  VEC(struct ring *) rings;
  size_t next; /* whose turn it is */
  size_t refused;
  struct buf body; /* of a round */
  struct jw writer;
  size_t records, looked; /* in it; bytes that were read for it */
};

/* ---- rings ---- */

static struct ring *find(const struct box_logs *l, struct str id)
{
  for (size_t i = 0; i < l->rings.n; i++)
    if (str_is(id, l->rings.p[i]->id))
      return l->rings.p[i];
  return NULL;
}

static void drop(struct box_logs *l, size_t i)
{
  struct ring *r = l->rings.p[i];
  close(r->fd);
  free(r);
  vec_remove_swap(&l->rings, i);
}

static bool same_file(int a, int b)
{
  struct stat one, two;
  return !fstat(a, &one) && !fstat(b, &two) && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/* Rings of boxes that are over go when they are read, or when they had their time. */
static void clear(struct box_logs *l)
{
  int64_t now = clock_mono_us();
  size_t over = 0;
  for (size_t i = l->rings.n; i-- > 0;) {
    const struct ring *r = l->rings.p[i];
    bool done = r->over_us && !r->orphan && (r->empty || ++over > OVER_MAX);
    if (done || (r->over_us && now - r->over_us > OVER_US))
      drop(l, i);
  }
  if (!l->rings.n)
    uv_timer_stop(&l->timer);
}

/* ---- a round ---- */

static void begin_record(struct box_logs *l)
{
  if (l->records++)
    return;
  buf_clear(&l->body);
  l->writer = JW(&l->body);
  otlp_logs_begin(&l->writer, l->host);
}

static void put_line(struct box_logs *l, const struct ring *r, struct str line)
{
  cleanup_arena struct arena a = ARENA_INIT((size_t)64 * LOG_LINE_MOST);
  struct log_entry e;
  if (!line.n || line.n > LOG_LINE_MOST || !log_entry_read(&a, line, &e) || e.at_us < r->from_us)
    return;
  struct otlp_log log = {.at_us = e.at_us,
                         .level = log_level_of(str_of(e.level)),
                         .text = e.message,
                         .box = str_of(r->id),
                         .team = str_of(r->team),
                         .stream = json_text(json_get(e.line, "stream"), STR_NONE),
                         .pid = json_text(json_get(e.line, "pid"), STR_NONE)};
  begin_record(l);
  otlp_log_add(&l->writer, &log);
}

static void put_loss(struct box_logs *l, struct ring *r)
{
  char text[128];
  int n = snprintf(text, sizeof(text), "%llu bytes of this log were overwritten before they could be exported",
                   (unsigned long long)r->lost);
  struct otlp_log log = {
      .at_us = clock_wall_us(), .level = 2, .text = {text, (size_t)n}, .box = str_of(r->id), .team = str_of(r->team)};
  begin_record(l);
  otlp_log_add(&l->writer, &log);
  r->lost = 0;
}

/* One piece. False: there was nothing new. */
static bool follow(struct box_logs *l, struct ring *r)
{
  cleanup_buf struct buf lines = BUF_INIT(PIECE);
  uint64_t before = r->at;
  r->empty = logring_follow(r->fd, &r->at, PIECE, &lines, &r->lost) || r->at == before;
  l->looked += PIECE * !r->empty;
  if (r->lost)
    put_loss(l, r);
  struct str rest = buf_str(&lines), line;
  while (str_cut(rest, '\n', &line, &rest))
    put_line(l, r, line);
  return !r->empty;
}

static bool has_room(const struct box_logs *l)
{
  return l->looked < ROUND_BYTES && l->body.n < ROUND_BYTES;
}

static void send_body(struct box_logs *l)
{
  if (l->records) {
    otlp_logs_end(&l->writer);
    delivery_add(l->delivery, "/v1/logs", &l->body);
  }
  buf_clear(&l->body);
  l->records = 0;
}

void box_logs_flush(struct box_logs *l)
{
  if (delivery_waiting(l->delivery) >= WAITING_MAX)
    return;
  l->looked = 0;
  for (size_t idle = 0; l->rings.n && idle < l->rings.n && has_room(l);) {
    l->next = (l->next + 1) % l->rings.n;
    idle = follow(l, l->rings.p[l->next]) ? 0 : idle + 1;
  }
  send_body(l);
}

static void time_to_look(uv_timer_t *t)
{
  struct box_logs *l = t->data;
  box_logs_flush(l);
  clear(l);
}

/* ---- what the warden says ---- */

static void add(struct box_logs *l, struct str packet, int fd)
{
  if (l->rings.n >= RINGS_MAX) {
    if (!l->refused++)
      log_warn("telemetry: logs of %d sandboxes are exported already; those of others are left out", RINGS_MAX);
    close(fd);
    return;
  }
  struct ring *r = xcalloc(1, sizeof(*r));
  str_copyz(str_sub(wire_get(packet, W_ID), 0, sizeof(r->id) - 1), r->id, sizeof(r->id));
  str_copyz(str_sub(wire_get(packet, W_TEAM), 0, sizeof(r->team) - 1), r->team, sizeof(r->team));
  r->from_us = (int64_t)wire_u64(packet, W_FROM, 0);
  r->fd = fd;
  vec_push(&l->rings, r);
  if (!uv_is_active((uv_handle_t *)&l->timer))
    uv_timer_start(&l->timer, time_to_look, l->config->batch_ms, MAX(l->config->batch_ms, 100u));
}

void box_logs_take(struct box_logs *l, struct str packet, int fd)
{
  struct ring *known = find(l, wire_get(packet, W_ID));
  if (fd < 0) {
    if (known) {
      known->over_us = clock_mono_us();
      known->empty = known->orphan = false;
    }
    return;
  }
  if (!known) {
    add(l, packet, fd);
    return;
  }
  if (!same_file(known->fd, fd)) { /* of its next run */
    known->at = 0;
    known->from_us = (int64_t)wire_u64(packet, W_FROM, 0);
  }
  close(known->fd);
  known->fd = fd;
  known->over_us = 0;
  known->orphan = false;
}

void box_logs_orphaned(struct box_logs *l)
{
  for (size_t i = 0; i < l->rings.n; i++)
    if (!l->rings.p[i]->over_us) {
      l->rings.p[i]->over_us = clock_mono_us();
      l->rings.p[i]->orphan = true;
    }
}

struct box_logs *box_logs_new(uv_loop_t *loop, struct delivery *d, const char *host, const struct exporter_config *c)
{
  struct box_logs *l = xcalloc(1, sizeof(*l));
  *l = (struct box_logs){.delivery = d, .config = c, .host = host, .body = BUF_INIT(BODY_MAX)};
  uv_timer_init(loop, &l->timer);
  l->timer.data = l;
  return l;
}
