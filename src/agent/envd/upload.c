/* SPDX-License-Identifier: Apache-2.0 */
/* upload.c - POST /files: bodies of any size in constant memory.
 *
 * The loop collects body bytes in one of two loads while a worker thread carries the other through its stations:
 * gunzip, multipart, file. Those of a large plain body the worker takes from the socket itself (net/body_carry.h). A
 * body that fits into the first buffer is carried on the loop, at the price of a few system calls and without a thread.
 * After a failure the rest of the body is read and dropped, so that the client hears the reason and not a broken
 * connection. */
#include "agent/envd/http_reply.h"
#include "agent/envd/files.h"
#include "agent/envd/inflate.h"
#include "agent/envd/metadata.h"
#include "agent/envd/multipart.h"
#include "agent/envd/resolve.h"
#include "agent/envd/file_sink.h"
#include "agent/thread_pool.h"
#include "net/body_carry.h"
#include <fcntl.h>

#define SMALL_BODY ((size_t)64 << 10)
#define HAND_OVER  ((size_t)128 << 10)
#define BUFFER_MAX ((size_t)4 << 20) /* pause comes at HAND_OVER; a piece that was on its way still fits */
#define FILES_MAX  10000
#define RAW_MIN    ((int64_t)1 << 20) /* plain bodies from here on the worker takes from the socket */

struct written {
  char *path;
};

struct upload {
  struct http_x *x; /* NULL once the peer is gone */
  struct work work;
  const char *workdir; /* copy in arena */
  struct user user;
  struct arena arena;
  struct rpc_list metadata;
  struct str path; /* from the query; p NULL = none */
  bool multipart, opened, busy, paused, ended, finishing, done;
  bool large;              /* a worker had some of it: the end, which may wait for the disk, is a worker's too */
  bool raw;                /* the worker may take the body from the socket */
  struct body_carry lent;  /* its socket, while a worker has it; else -1 */
  struct inflate *inflate; /* NULL = identity */
  struct multipart parts;
  struct sink sink;
  struct buf loads[2]; /* what one round of the worker writes */
  struct buf *filling, *carrying;
  VEC(struct written) files;
};

static void upload_free(struct upload *u)
{
  for (size_t i = 0; i < u->files.n; i++)
    free(u->files.p[i].path);
  vec_free(&u->files);
  sink_abort(&u->sink);
  if (u->multipart)
    multipart_free(&u->parts);
  inflate_free(u->inflate);
  buf_free(&u->loads[0]);
  buf_free(&u->loads[1]);
  body_carry_close(&u->lent);
  if (u->lent.sock >= 0)
    close(u->lent.sock);
  arena_free(&u->arena);
  free(u);
}

/* ---- the stations (any thread) ---- */

static bool written_already(const struct upload *u, const char *path)
{
  for (size_t i = 0; i < u->files.n; i++)
    if (strcmp(u->files.p[i].path, path) == 0)
      return true;
  return false;
}

static int file_begin(struct upload *u, struct str given)
{
  cleanup_buf struct buf path = BUF_INIT(64 << 10);
  struct err err = ERR_NONE;
  if (resolve_path(given, &u->user, u->workdir, &path, &err) < 0)
    return sink_fail(&u->sink, 400, "error resolving path: %s", err.msg);
  if (written_already(u, buf_z(&path)))
    return sink_fail(&u->sink, 400,
                     "you cannot upload multiple files to the same path '%s' in one upload request, only the "
                     "first specified file was uploaded",
                     buf_z(&path));
  if (u->files.n >= FILES_MAX)
    return sink_fail(&u->sink, 400, "more than %d files in one request", FILES_MAX);
  int rc = sink_open(&u->sink, buf_z(&path));
  if (rc < 0)
    return rc;
  struct written w = {xstrdup(buf_z(&path))};
  vec_push(&u->files, w);
  u->opened = true;
  return 0;
}

static int part_begin(void *arg, struct str name, struct str filename, bool has_filename)
{
  struct upload *u = arg;
  if (!str_is(name, "file"))
    return 0;
  if (!u->path.p && (!has_filename || !filename.n))
    return sink_fail(&u->sink, 400,
                     "error getting multipart custom part file name: filename not found in "
                     "Content-Disposition header");
  return file_begin(u, u->path.p ? u->path : filename);
}

static int part_data(void *arg, struct str bytes)
{
  struct upload *u = arg;
  return u->opened ? sink_write(&u->sink, bytes) : 0;
}

static int part_end(void *arg)
{
  struct upload *u = arg;
  bool was = u->opened;
  u->opened = false;
  return was ? sink_close(&u->sink) : 0;
}

static const struct multipart_ops part_ops = {part_begin, part_data, part_end};

static int content(void *arg, struct str bytes)
{
  struct upload *u = arg;
  if (!u->multipart)
    return sink_write(&u->sink, bytes);
  int rc = multipart_feed(&u->parts, bytes);
  if (rc < 0 && !u->sink.status)
    sink_fail(&u->sink, 500, "error parsing multipart form: malformed part");
  return rc;
}

static void carry(struct upload *u, struct str bytes)
{
  if (u->sink.status || !bytes.n)
    return;
  int rc = u->inflate ? inflate_feed(u->inflate, bytes, content, u) : content(u, bytes);
  if (u->sink.status)
    return;
  if (rc == -EBADMSG)
    sink_fail(&u->sink, 400, "failed to create gzip reader: invalid header");
  else if (rc < 0)
    sink_fail(&u->sink, 500, "error reading request body: gzip data is broken");
}

static int take_pipe(void *arg, int pipe, size_t n)
{
  struct upload *u = arg;
  return sink_pipe(&u->sink, pipe, n);
}

static void carry_load(struct upload *u, struct buf *load)
{
  carry(u, buf_str(load));
  u->lent.took = 0;
  if (u->lent.sock < 0 || u->sink.status)
    return;
  int r = body_carry(&u->lent);
  if (r && !u->sink.status)
    sink_fail(&u->sink, 500, "error reading request body: %s", strerror(-r));
}

static void carry_end(struct upload *u)
{
  if (u->sink.status)
    return;
  if (u->inflate && !inflate_whole(u->inflate))
    sink_fail(&u->sink, 500, "error reading request body: unexpected end of gzip data");
  else if (u->multipart && multipart_finish(&u->parts) < 0)
    sink_fail(&u->sink, 500, "error parsing multipart form: unexpected end of data");
  else if (!u->multipart)
    sink_close(&u->sink);
}

/* ---- the answer ---- */

static void file_describe(struct upload *u, struct jw *w, const char *path)
{
  struct rpc_list found = {0};
  jw_open(w, '{');
  jw_key(w, "path");
  jw_z(w, path);
  jw_key(w, "name");
  jw_str(w, path_base(str_of(path)));
  jw_key(w, "type");
  jw_z(w, "file");
  if (u->metadata.n)
    metadata_read(path, &u->arena, &found);
  if (found.n) {
    jw_key(w, "metadata");
    jw_open(w, '{');
    for (size_t i = 0; i < found.n; i++) {
      jw_keys(w, ((struct rpc_pair *)found.p)[i].key);
      jw_str(w, ((struct rpc_pair *)found.p)[i].value);
    }
    jw_close(w, '}');
  }
  jw_close(w, '}');
}

static void reply(struct upload *u)
{
  u->done = true;
  if (u->sink.status) {
    answer_fail(u->x, u->sink.status, "%s", u->sink.message);
    return;
  }
  cleanup_buf struct buf body = BUF_INIT(BUF_DEFAULT_MAX);
  struct jw w = JW(&body);
  jw_open(&w, '[');
  for (size_t i = 0; i < u->files.n; i++)
    file_describe(u, &w, u->files.p[i].path);
  jw_close(&w, ']');
  answer_json(u->x, 200, false, buf_str(&body));
}

/* ---- loop and worker ---- */

static void upload_run(struct work *w)
{
  struct upload *u = w->data;
  carry_load(u, u->carrying);
  if (u->finishing)
    carry_end(u);
}

static void advance(struct upload *u);

static void upload_done(struct work *w)
{
  struct upload *u = w->data;
  u->busy = false;
  buf_clear(u->carrying);
  if (!u->x) {
    upload_free(u);
    return;
  }
  if (u->lent.sock >= 0) {
    close(steal_fd(&u->lent.sock));
    http_x_lent(u->x, u->lent.took);
  }
  advance(u);
}

static void swap_loads(struct upload *u)
{
  struct buf *full = u->filling;
  u->filling = u->carrying;
  u->carrying = full;
}

static void hand_over(struct upload *u)
{
  swap_loads(u);
  u->finishing = u->ended;
  u->busy = u->large = true;
  if (work_queue(&u->work) == 0)
    return;
  u->busy = false; /* no thread to be had: then here */
  carry_load(u, u->carrying);
  if (u->finishing)
    carry_end(u);
  buf_clear(u->carrying);
}

/* Whatever happened, decides what is next: another piece for the worker, more body, or the answer. */
static void advance(struct upload *u)
{
  if (u->busy || u->done)
    return;
  if (u->finishing) {
    reply(u);
    return;
  }
  if (u->ended || u->filling->n >= HAND_OVER)
    hand_over(u);
  if (u->paused && u->filling->n < HAND_OVER && !u->done) {
    u->paused = false;
    http_x_resume(u->x);
  }
  if (u->finishing && !u->busy && !u->done)
    reply(u);
}

static void hold_back(struct upload *u)
{
  u->paused = true;
  http_x_pause(u->x);
}

/* Something came. Enough for the worker? */
static void filled(struct upload *u)
{
  if (u->filling->n < HAND_OVER)
    return;
  if (u->busy)
    hold_back(u);
  advance(u);
}

static void on_body(struct http_x *x, struct str chunk)
{
  struct upload *u = http_x_data(x);
  if (!u->busy && u->sink.status)
    return;
  if (buf_adds(u->filling, chunk) < 0) {
    http_abort(x);
    return;
  }
  filled(u);
}

/* The worker may take what comes next from the socket. */
static enum http_lend on_lend(struct http_x *x, int fd, uint64_t most)
{
  struct upload *u = http_x_data(x);
  if (!u->raw || (!u->busy && u->sink.status))
    return HTTP_LEND_NOT;
  if (u->busy) {
    hold_back(u);
    return HTTP_LEND_WAIT;
  }
  swap_loads(u);
  u->lent.sock = fd;
  u->lent.most = most;
  u->busy = u->large = true;
  if (work_queue(&u->work)) { /* no thread to be had: as other bodies, then */
    swap_loads(u);
    u->lent.sock = -1;
    u->busy = u->raw = false;
    return HTTP_LEND_NOT;
  }
  hold_back(u);
  return HTTP_LEND_TAKEN;
}

static void on_passed(struct http_x *x UNUSED, size_t n UNUSED)
{
}

static void on_body_end(struct http_x *x)
{
  struct upload *u = http_x_data(x);
  u->ended = true;
  if (!u->busy && !u->large && !u->inflate && u->filling->n <= SMALL_BODY) {
    carry_load(u, u->filling);
    carry_end(u);
    reply(u);
    return;
  }
  advance(u);
}

static void on_gone(struct http_x *x, enum http_end how UNUSED)
{
  struct upload *u = http_x_data(x);
  u->x = NULL;
  if (!u->busy)
    upload_free(u);
}

static const struct http_x_ops upload_ops = {
    .body = on_body, .body_end = on_body_end, .gone = on_gone, .passed = on_passed, .lend = on_lend};

/* ---- the head of the request ---- */

static int encoding_read(struct http_x *x, struct upload *u)
{
  struct str encoding, rest;
  str_cut(http_header(http_x_head(x), "Content-Encoding"), ';', &encoding, &rest);
  encoding = str_trim(encoding);
  if (encoding.n == 0 || str_ieq(encoding, STR("identity")))
    return 0;
  if (!str_ieq(encoding, STR("gzip")))
    return sink_fail(&u->sink, 400, "unsupported Content-Encoding: " STR_FMT ", supported: [gzip]",
                     STR_ARG(str_sub(encoding, 0, 64)));
  u->inflate = inflate_new();
  return u->inflate ? 0 : sink_fail(&u->sink, 500, "not enough memory");
}

static int body_form(struct http_x *x, struct upload *u)
{
  struct str whole = http_header(http_x_head(x), "Content-Type"), type, rest;
  str_cut(whole, ';', &type, &rest);
  type = str_trim(type);
  if (str_istarts(type, STR("multipart/"))) {
    u->multipart = true;
    if (multipart_init(&u->parts, whole, &part_ops, u) < 0)
      return sink_fail(&u->sink, 400, "error parsing multipart form: no multipart boundary param in Content-Type");
    return 0;
  }
  if (!str_ieq(type, STR("application/octet-stream")))
    return sink_fail(&u->sink, 400, "unsupported content type: " STR_FMT, STR_ARG(str_sub(whole, 0, 256)));
  if (!u->path.p)
    return sink_fail(&u->sink, 400, "path query parameter is required for raw body upload");
  return 0;
}

static int metadata_take(struct http_x *x, struct upload *u)
{
  struct err err = ERR_NONE;
  struct rpc_list seen = {0};
  if (metadata_parse(http_x_head(x), &u->arena, &seen, &err) < 0)
    return sink_fail(&u->sink, 400, "%s", err.msg);
  for (size_t i = 0; i < seen.n; i++) {
    struct rpc_pair pair = ((struct rpc_pair *)seen.p)[i];
    pair.value = arena_str(&u->arena, pair.value);
    if (!pair.value.p || rpc_list_add(&u->arena, &u->metadata, sizeof(pair), &pair) < 0)
      return sink_fail(&u->sink, 500, "not enough memory");
  }
  return 0;
}

static struct upload *upload_new(struct http_x *x, const struct agent *a, const struct files_query *q)
{
  struct upload *u = xcalloc(1, sizeof(*u));
  u->x = x;
  u->work = (struct work){.run = upload_run, .done = upload_done, .data = u};
  u->arena = ARENA_INIT((size_t)1 << 20);
  u->workdir = a->default_workdir ? arena_z(&u->arena, str_of(a->default_workdir)) : NULL;
  if (q->has_path && q->path.n)
    u->path = arena_str(&u->arena, buf_str(&q->path));
  u->sink = (struct sink){.user = &u->user, .metadata = &u->metadata, .announced = http_x_body_length(x), .fd = -1};
  for (size_t i = 0; i < ARRAY_LEN(u->loads); i++)
    u->loads[i] = (struct buf)BUF_INIT(BUFFER_MAX);
  u->lent = (struct body_carry){.sock = -1, .take = take_pipe, .arg = u};
  u->filling = &u->loads[0];
  u->carrying = &u->loads[1];
  return u;
}

void files_upload(struct http_x *x, struct agent *a)
{
  cleanup_files_query struct files_query q = {0};
  struct user user;
  if (files_enter(x, a, "write", &q, &user) < 0)
    return;
  struct upload *u = upload_new(x, a, &q);
  u->user = user;
  http_x_handle(x, &upload_ops, u);
  bool good = body_form(x, u) == 0 && encoding_read(x, u) == 0 && metadata_take(x, u) == 0 &&
              (u->multipart || file_begin(u, u->path) == 0);
  if (!good && http_header(http_x_head(x), "Expect").p) { /* it has not sent its body yet and need not */
    reply(u);
    return;
  }
  u->raw = good && !u->multipart && !u->inflate && http_x_body_length(x) >= RAW_MIN;
  http_x_body_max(x, UINT64_MAX);
  http_x_resume(x);
}
