/* SPDX-License-Identifier: Apache-2.0 */
/* bench_build.c - how long a template's build takes where it should take little: everything known, one step new; and
 * how soon a box begins whose template has its server running. Builds from the template under test. */
#include "cli/bench/bench.h"

#include <stdio.h>
#include <time.h>

#define POLL_NS 2000000
#define WAIT_NS 120000000000LL
#define SERVER                                                                                                         \
  "\"startCmd\":\"cd /usr && exec python3 -m http.server 8642\","                                                      \
  "\"readyCmd\":\"curl -sf -o /dev/null http://127.0.0.1:8642/\""

static int call_api(struct client *c, const char *method, const char *path, struct str body, struct json **out,
                    struct arena *a, struct err *err)
{
  char headers[300];
  snprintf(headers, sizeof(headers), "X-API-Key: %s\r\nContent-Type: application/json\r\n",
           c->bench->key ? c->bench->key : "");
  struct call *k = &c->call;
  k->method = method;
  k->path = path;
  k->headers = headers;
  k->body = body;
  k->watch = NULL;
  k->count_only = false;
  int r = bench_http_request(c->api, k, err);
  k->path = k->headers = "";
  if (r)
    return r;
  if (k->status >= 300)
    return err_set(err, -EREMOTEIO, "%s %s: %d %.200s", method, path, k->status, buf_z(&k->answer));
  *out = k->answer.n ? json_read(a, buf_str(&k->answer), 0, NULL) : NULL;
  return 0;
}

static int wait_ready(struct client *c, const char *path, struct err *err)
{
  for (int64_t until = now_ns() + WAIT_NS; now_ns() < until;) {
    cleanup_arena struct arena a = ARENA_INIT(16 << 20);
    struct json *v;
    int r = call_api(c, "GET", path, STR_NONE, &v, &a, err);
    struct str status = json_text(json_get(v, "status"), STR(""));
    if (r || str_is(status, "ready"))
      return r;
    if (str_is(status, "error"))
      return err_set(err, -EREMOTEIO, "the build failed: " STR_FMT,
                     STR_ARG(json_text(json_get(json_get(v, "reason"), "message"), STR("no reason"))));
    nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
  }
  return err_set(err, -ETIMEDOUT, "the build took longer than two minutes");
}

/* From the request to `ready`, in milliseconds. `recipe` is the rest of the start's JSON after fromTemplate. */
static int build(struct client *c, const char *name, const char *recipe, double *ms, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct json *made = NULL, *none;
  int64_t began = now_ns();
  buf_addf(&b, "{\"name\":\"%s\",\"cpuCount\":2,\"memoryMB\":1024}", name);
  int r = call_api(c, "POST", "/v3/templates", buf_str(&b), &made, &a, err);
  if (r)
    return r;
  const char *id = arena_z(&a, json_text(json_get(made, "templateID"), STR(""))),
             *build_id = arena_z(&a, json_text(json_get(made, "buildID"), STR("")));
  buf_clear(&b);
  buf_addf(&b, "{\"fromTemplate\":\"%s\",%s}", c->bench->template, recipe);
  r = call_api(c, "POST", arena_fmt(&a, "/v2/templates/%s/builds/%s", id, build_id), buf_str(&b), &none, &a, err);
  r = r ? r : wait_ready(c, arena_fmt(&a, "/templates/%s/builds/%s/status?limit=1", id, build_id), err);
  *ms = (double)(now_ns() - began) / 1e6;
  return r;
}

static void delete (struct client *c, const char *name)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct json *none;
  call_api(c, "DELETE", arena_fmt(&a, "/templates/%s", name), STR_NONE, &none, &a, &(struct err){0});
}

static int rebuilds(struct client *c, const char *name, struct err *err)
{
  char recipe[600], draw[21];
  double ms;
  static const char steps[] =
      "{\"type\":\"RUN\",\"args\":[\"echo one > ~/one\"]},{\"type\":\"ENV\",\"args\":[\"A\",\"1\"]},"
      "{\"type\":\"RUN\",\"args\":[\"echo two > ~/two\"]}";
  snprintf(recipe, sizeof(recipe), "\"steps\":[%s]", steps);
  int r = build(c, name, recipe, &ms, err);
  for (unsigned i = 0; i < scaled(c->bench, 20) && !r; i++) {
    r = build(c, name, recipe, &ms, err);
    if (!r)
      sample("rebuild", ms);
  }
  for (unsigned i = 0; i < scaled(c->bench, 8) && !r; i++) {
    random_id(draw, 20);
    snprintf(recipe, sizeof(recipe), "\"steps\":[%s,{\"type\":\"RUN\",\"args\":[\"echo %s > ~/last\"]}]", steps, draw);
    r = build(c, name, recipe, &ms, err);
    if (!r)
      sample("rebuild_last", ms);
  }
  return r;
}

/* A template whose server runs: nothing new, and a new last step, after which the server is started and written to disk
 * again. */
static int ready_rebuilds(struct client *c, const char *name, struct err *err)
{
  char recipe[600], draw[21];
  double ms;
  int r = 0;
  for (unsigned i = 0; i < scaled(c->bench, 6) && !r; i++) {
    random_id(draw, 20);
    snprintf(recipe, sizeof(recipe), "\"steps\":[{\"type\":\"RUN\",\"args\":[\"echo %s > ~/last\"]}]," SERVER, draw);
    r = build(c, name, recipe, &ms, err);
    if (!r)
      sample("rebuild_ready_last", ms);
    r = r ? r : build(c, name, recipe, &ms, err);
    if (!r)
      sample("rebuild_ready", ms);
  }
  return r;
}

static int ready_creates(struct client *c, const char *name, struct err *err)
{
  static const char recipe[] = "\"steps\":[]," SERVER;
  struct bench here = *c->bench;
  double ms;
  int r = build(c, name, recipe, &ms, err);
  here.template = name;
  cleanup_client struct client other;
  client_open(&other, &here);
  for (unsigned i = 0; i < scaled(&here, 12) && !r; i++) {
    struct bench_box g;
    space_out(&here);
    r = bench_box_create(&other, &g, err);
    int64_t began = other.call.began_ns;
    struct call k = {.method = "GET", .path = "/share/"};
    r = r ? r : bench_box_request(&other, &g, 8642, &k, err);
    if (!r && k.status != 200)
      r = err_set(err, -EREMOTEIO, "the template's server answered %d", k.status);
    if (!r)
      sample("create_ready", (double)(k.ended_ns - began) / 1e6);
    buf_free(&k.answer);
    bench_box_kill(&other, &g, &(struct err){0});
  }
  return r;
}

int build_times(struct bench *b, struct err *err)
{
  char name[40] = "bench-";
  cleanup_client struct client c;
  client_open(&c, b);
  random_id(name + 6, 16);
  int r = rebuilds(&c, name, err);
  r = r ? r : ready_rebuilds(&c, name, err);
  r = r ? r : ready_creates(&c, name, err);
  delete (&c, name);
  return r;
}
