/* SPDX-License-Identifier: Apache-2.0 */
/* compose.c - POST /files/compose: several files become one. The pieces are copied on a worker thread into a temporary
 * file beside the destination, which takes its place in one step; on any failure everything stays as it was. */
#include "agent/envd/http_reply.h"
#include "agent/envd/files.h"
#include "agent/envd/resolve.h"
#include "agent/thread_pool.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define BODY_MAX  ((size_t)8 << 20)
#define COPY_STEP ((size_t)64 << 20)

struct compose {
  struct work work;
  struct http_x *x; /* NULL once the peer is gone */
  bool busy;
  struct user user;
  VEC(char *) sources;
  char *destination, *temporary;
  int status;
  char message[1024];
  struct buf body;
  const struct agent *agent;
};

static void compose_free(struct compose *c)
{
  for (size_t i = 0; i < c->sources.n; i++)
    free(c->sources.p[i]);
  vec_free(&c->sources);
  free(c->destination);
  free(c->temporary);
  buf_free(&c->body);
  free(c);
}

static int fail(struct compose *c, int status, const char *what, const char *why)
{
  c->status = status;
  snprintf(c->message, sizeof(c->message), "%s: %s", what, why);
  return -EIO;
}

static int fail_errno(struct compose *c, const char *what, int code)
{
  if (code == ENOSPC || code == EDQUOT)
    return fail(c, 507, what, "not enough disk space available");
  return fail(c, 500, what, strerror(code));
}

/* ---- on the worker ---- */

static int append(struct compose *c, int out, const char *path)
{
  cleanup_fd int in = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat st;
  if (in < 0 || fstat(in, &st) < 0)
    return errno == ENOENT ? fail(c, 404, "source not found", path) : fail_errno(c, path, errno);
  if (!S_ISREG(st.st_mode))
    return fail(c, 400, "source is not a regular file", path);
  for (;;) {
    ssize_t n = copy_file_range(in, NULL, out, NULL, COPY_STEP, 0);
    if (n == 0)
      return 0;
    if (n < 0)
      break;
  }
  if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP && errno != EINTR)
    return fail_errno(c, path, errno);
  char bytes[64 << 10];
  for (ssize_t n; (n = read(in, bytes, sizeof(bytes))) != 0;) {
    if (n < 0 && errno == EINTR)
      continue;
    int rc = n < 0 ? -errno : fd_write_all(out, bytes, (size_t)n);
    if (rc < 0)
      return fail_errno(c, path, -rc);
  }
  return 0;
}

static int sources_check(struct compose *c)
{
  for (size_t i = 0; i < c->sources.n; i++) {
    struct stat st;
    if (stat(c->sources.p[i], &st) < 0)
      return errno == ENOENT || errno == ENOTDIR ? fail(c, 404, "source not found", c->sources.p[i])
                                                 : fail_errno(c, c->sources.p[i], errno);
    if (!S_ISREG(st.st_mode))
      return fail(c, 400, "source is not a regular file", c->sources.p[i]);
  }
  return 0;
}

static int assemble(struct compose *c)
{
  int rc = resolve_parents(c->destination, &c->user);
  if (rc < 0)
    return fail_errno(c, "error ensuring directories", -rc);
  cleanup_fd int out = open(c->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (out < 0)
    return fail_errno(c, c->temporary, errno);
  if (fchown(out, c->user.uid, c->user.gid) < 0)
    return fail_errno(c, c->temporary, errno);
  for (size_t i = 0; i < c->sources.n; i++)
    if (append(c, out, c->sources.p[i]) < 0)
      return -EIO;
  if (rename(c->temporary, c->destination) < 0)
    return fail_errno(c, c->destination, errno);
  return 0;
}

static void compose_run(struct work *w)
{
  struct compose *c = w->data;
  if (sources_check(c) < 0)
    return;
  if (assemble(c) < 0) {
    unlink(c->temporary);
    return;
  }
  for (size_t i = 0; i < c->sources.n; i++)
    unlink(c->sources.p[i]);
}

/* ---- on the loop ---- */

static void compose_done(struct work *w)
{
  struct compose *c = w->data;
  c->busy = false;
  if (!c->x) {
    compose_free(c);
    return;
  }
  if (c->status) {
    answer_fail(c->x, c->status, "%s", c->message);
    return;
  }
  cleanup_buf struct buf body = BUF_INIT(BODY_MAX);
  struct jw j = JW(&body);
  jw_open(&j, '{');
  jw_key(&j, "path");
  jw_z(&j, c->destination);
  jw_key(&j, "name");
  jw_str(&j, path_base(str_of(c->destination)));
  jw_key(&j, "type");
  jw_z(&j, "file");
  jw_close(&j, '}');
  answer_json(c->x, 200, false, buf_str(&body));
}

static int path_take(struct compose *c, const struct json *v, char **out)
{
  cleanup_buf struct buf path = BUF_INIT(64 << 10);
  struct err err = ERR_NONE;
  struct str text = json_text(v, STR(""));
  if (!text.n)
    return fail(c, 400, "bad request", "an empty path");
  if (resolve_path(text, &c->user, c->agent->default_workdir, &path, &err) < 0)
    return fail(c, 400, "bad path", err.msg);
  *out = xstrdup(buf_z(&path));
  return 0;
}

static int request_take(struct compose *c, const struct json *v)
{
  struct str name = json_text(json_get(v, "username"), str_of(c->agent->default_user));
  const struct json *sources = json_get(v, "source_paths");
  if (user_find(name, &c->user) < 0) {
    c->status = 401;
    snprintf(c->message, sizeof(c->message), "error looking up user '" STR_FMT "': user: unknown user " STR_FMT,
             STR_ARG(name), STR_ARG(name));
    return -ENOENT;
  }
  if (!json_is(sources, JSON_ARRAY) || !sources->count)
    return fail(c, 400, "bad request", "source_paths is empty");
  if (path_take(c, json_get(v, "destination"), &c->destination) < 0)
    return -EINVAL;
  for (const struct json *kid = sources->kids; kid; kid = kid->next) {
    char *path = NULL;
    if (path_take(c, kid, &path) < 0)
      return -EINVAL;
    vec_push(&c->sources, path);
    if (strcmp(path, c->destination) == 0)
      return fail(c, 400, "source is the destination", path);
  }
  char id[UUID_TEXT];
  uuid4(id);
  c->temporary = xasprintf("%s.e2b-compose.%s.tmp", c->destination, id);
  return 0;
}

static void on_body(struct http_x *x, struct str chunk)
{
  struct compose *c = http_x_data(x);
  buf_adds(&c->body, chunk);
}

static void on_body_end(struct http_x *x)
{
  struct compose *c = http_x_data(x);
  cleanup_arena struct arena arena = ARENA_INIT(8 * BODY_MAX);
  struct json_error why = {0};
  struct json *v = json_read(&arena, buf_str(&c->body), 0, &why);
  if (!json_is(v, JSON_OBJECT)) {
    answer_fail(x, 400, "error decoding request: not a JSON object");
    return;
  }
  if (request_take(c, v) < 0) {
    answer_fail(x, c->status, "%s", c->message);
    return;
  }
  c->busy = true;
  if (work_queue(&c->work) == 0)
    return;
  compose_run(&c->work); /* no thread to be had: then here */
  compose_done(&c->work);
}

static void on_gone(struct http_x *x, enum http_end how UNUSED)
{
  struct compose *c = http_x_data(x);
  c->x = NULL;
  if (!c->busy)
    compose_free(c);
}

static const struct http_x_ops compose_ops = {.body = on_body, .body_end = on_body_end, .gone = on_gone};

void files_compose(struct http_x *x, struct agent *a)
{
  struct compose *c = xcalloc(1, sizeof(*c));
  c->x = x;
  c->agent = a;
  c->work = (struct work){.run = compose_run, .done = compose_done, .data = c};
  c->body = BUF_INIT(BODY_MAX);
  http_x_handle(x, &compose_ops, c);
  http_x_body_max(x, BODY_MAX);
  http_x_resume(x);
}
