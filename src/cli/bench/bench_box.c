/* SPDX-License-Identifier: Apache-2.0 */
/* bench_box.c - boxes as stock clients use them: the same routes, headers and bodies. */
#include "cli/bench/bench.h"

#include <stdio.h>

void client_open(struct client *c, const struct bench *b)
{
  *c = (struct client){.bench = b, .api = bench_http_new(&b->api), .edge = bench_http_new(&b->edge)};
}

void client_close(struct client *c)
{
  bench_http_free(steal(&c->api));
  bench_http_free(steal(&c->edge));
  buf_free(&c->call.answer);
}

/* The call of a client is used again and again; only its answer buffer stays. */
static struct call *fresh(struct client *c, const char *method, const char *path)
{
  struct buf answer = c->call.answer;
  c->call = (struct call){.method = method, .path = path, .answer = answer};
  return &c->call;
}

static int succeeded(const struct call *k, struct err *err)
{
  if (k->status >= 200 && k->status < 300)
    return 0;
  struct str text = str_sub(buf_str(&k->answer), 0, 200);
  return err_set(err, -EREMOTEIO, "%s %s answered %d: " STR_FMT, k->method, k->path, k->status, STR_ARG(text));
}

static int api_send(struct client *c, struct call *k, struct err *err)
{
  char headers[512];
  snprintf(headers, sizeof(headers), "X-API-KEY: %s\r\nContent-Type: application/json\r\n", c->bench->key);
  k->headers = headers;
  int r = bench_http_request(c->api, k, err);
  k->headers = NULL;
  return r ? r : succeeded(k, err);
}

/* ---- life ---- */

static int created(struct client *c, struct bench_box *g, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct json *v = json_read(&a, buf_str(&c->call.answer), 0, NULL);
  struct str domain = json_text(json_get(v, "domain"), STR(""));
  if (str_copyz(json_text(json_get(v, "sandboxID"), STR("")), g->id, sizeof(g->id)) || !g->id[0])
    return err_set(err, -EPROTO, "the answer to the create names no sandboxID");
  str_copyz(json_text(json_get(v, "envdAccessToken"), STR("")), g->token, sizeof(g->token));
  if (c->bench->domain)
    domain = c->bench->domain[0] ? str_of(c->bench->domain) : domain;
  return str_copyz(c->bench->domain ? domain : STR(""), g->domain, sizeof(g->domain));
}

int bench_box_create(struct client *c, struct bench_box *g, struct err *err)
{
  return bench_box_create_with(c, g, NULL, err);
}

int bench_box_create_with(struct client *c, struct bench_box *g, const char *volume, struct err *err)
{
  char body[768], mounts[200] = "";
  if (volume)
    snprintf(mounts, sizeof(mounts), ",\"volumeMounts\":[{\"name\":\"%s\",\"path\":\"" BENCH_VOLUME "\"}]", volume);
  *g = (struct bench_box){.id = ""};
  int n = snprintf(body, sizeof(body),
                   "{\"templateID\":\"%s\",\"metadata\":{},\"envVars\":{},\"timeout\":300,\"secure\":true,\"allow_"
                   "internet_access\":true%s}",
                   c->bench->template, mounts);
  struct call *k = fresh(c, "POST", "/sandboxes");
  k->body = str_make(body, (size_t)n);
  int r = api_send(c, k, err);
  return r ? r : created(c, g, err);
}

int bench_volume_create(struct client *c, const char *name, struct bench_volume *v, struct err *err)
{
  char body[200];
  struct call *k = fresh(c, "POST", "/volumes");
  k->body = str_make(body, (size_t)snprintf(body, sizeof(body), "{\"name\":\"%s\"}", name));
  int r = api_send(c, k, err);
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  const struct json *told = r ? NULL : json_read(&a, buf_str(&k->answer), 0, NULL);
  struct str id = json_text(json_get(told, "volumeID"), STR("")), token = json_text(json_get(told, "token"), STR(""));
  if (!r && (!id.n || str_copyz(id, v->id, sizeof(v->id)) || str_copyz(token, v->token, sizeof(v->token))))
    r = err_set(err, -EBADMSG, "the answer names no volume");
  return r;
}

int bench_volume_file(struct client *c, const struct bench_volume *v, struct str body, struct err *err)
{
  char path[120], headers[400];
  snprintf(path, sizeof(path), "/volumecontent/%s/file?path=/big%s", v->id, body.n ? "&force=true" : "");
  snprintf(headers, sizeof(headers), "Authorization: Bearer %s\r\nContent-Type: application/octet-stream\r\n",
           v->token);
  struct call *k = fresh(c, body.n ? "PUT" : "GET", path);
  k->headers = headers;
  k->body = body;
  k->count_only = !body.n;
  int r = bench_http_request(c->api, k, err);
  r = r ? r : succeeded(k, err);
  k->headers = NULL;
  k->path = "";
  return r;
}

int bench_volume_unlink(struct client *c, const struct bench_volume *v, struct err *err)
{
  char path[120], headers[300];
  snprintf(path, sizeof(path), "/volumecontent/%s/path?path=/big", v->id);
  snprintf(headers, sizeof(headers), "Authorization: Bearer %s\r\n", v->token);
  struct call *k = fresh(c, "DELETE", path);
  k->headers = headers;
  int r = bench_http_request(c->api, k, err);
  r = r ? r : succeeded(k, err);
  k->headers = NULL;
  k->path = "";
  return r;
}

int bench_volume_remove(struct client *c, const struct bench_volume *v, struct err *err)
{
  char path[100];
  snprintf(path, sizeof(path), "/volumes/%s", v->id);
  int r = api_send(c, fresh(c, "DELETE", path), err);
  c->call.path = "";
  return r;
}

static int verb(struct client *c, struct bench_box *g, const char *method, const char *tail, struct str body,
                struct err *err)
{
  char path[200];
  snprintf(path, sizeof(path), "/sandboxes/%s%s", g->id, tail);
  struct call *k = fresh(c, method, path);
  k->body = body;
  int r = api_send(c, k, err);
  k->path = "";
  return r;
}

int bench_box_kill(struct client *c, struct bench_box *g, struct err *err)
{
  bench_http_free(steal(&g->line));
  return g->id[0] ? verb(c, g, "DELETE", "", STR_NONE, err) : 0;
}

int bench_box_pause(struct client *c, struct bench_box *g, struct err *err)
{
  return verb(c, g, "POST", "/pause", STR("{}"), err);
}

/* A copy of the running box, memory and all. */
int bench_box_fork(struct client *c, struct bench_box *g, struct bench_box *copy, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  *copy = (struct bench_box){.id = ""};
  int r = verb(c, g, "POST", "/fork", STR("{\"timeout\":300,\"count\":1}"), err);
  struct json *v = r ? NULL : json_read(&a, buf_str(&c->call.answer), 0, NULL);
  struct json *made = json_get(v ? v->kids : NULL, "sandbox");
  if (!r && (str_copyz(json_text(json_get(made, "sandboxID"), STR("")), copy->id, sizeof(copy->id)) || !copy->id[0]))
    r = err_set(err, -EPROTO, "the answer to the fork names no sandboxID");
  str_copyz(json_text(json_get(made, "envdAccessToken"), STR("")), copy->token, sizeof(copy->token));
  memcpy(copy->domain, g->domain, sizeof(copy->domain));
  return r;
}

int bench_box_resume(struct client *c, struct bench_box *g, struct err *err)
{
  return verb(c, g, "POST", "/connect", STR("{\"timeout\":300}"), err);
}

/* ---- inside ---- */

int bench_box_headers(const struct bench_box *g, unsigned port, const char *more, char *out, size_t size)
{
  int n = snprintf(out, size, "E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: %u\r\n%s%s%s%s", g->id, port,
                   g->token[0] ? "X-Access-Token: " : "", g->token, g->token[0] ? "\r\n" : "", more ? more : "");
  return n < 0 || (size_t)n >= size ? -E2BIG : 0;
}

/* One origin for all boxes, or a host name per box and port. */
static struct bench_http *way(struct client *c, struct bench_box *g, unsigned port)
{
  if (!g->domain[0])
    return c->edge;
  struct origin o = {.tls = true, .port = "443"};
  snprintf(o.host, sizeof(o.host), "%u-%s.%s", port, g->id, g->domain);
  if (g->line && strcmp(o.host, g->origin.host))
    bench_http_free(steal(&g->line));
  g->origin = o;
  if (!g->line)
    g->line = bench_http_new(&g->origin);
  return g->line;
}

int bench_box_request(struct client *c, struct bench_box *g, unsigned port, struct call *k, struct err *err)
{
  char headers[1024];
  const char *own = k->headers;
  int r = bench_box_headers(g, port, own, headers, sizeof(headers));
  if (r)
    return err_set(err, r, "headers of %s are too long", k->path);
  k->headers = headers;
  r = bench_http_request(way(c, g, port), k, err);
  k->headers = own;
  return r ? r : succeeded(k, err);
}

static int expected(const struct call *k, const char *expect, struct err *err)
{
  if (!expect || str_search(buf_str(&k->answer), str_of(expect)) >= 0)
    return 0;
  struct str text = str_sub(buf_str(&k->answer), 0, 300);
  return err_set(err, -EBADMSG, "%s: no %s in the answer: " STR_FMT, k->path, expect, STR_ARG(text));
}

int bench_box_run(struct client *c, struct bench_box *g, const char *code, const char *context, const char *expect,
                  struct err *err)
{
  cleanup_buf struct buf body = BUF_INIT(1 << 20);
  struct jw w = JW(&body);
  const char *watch = c->call.watch;
  jw_open(&w, '{');
  jw_key(&w, "code");
  jw_z(&w, code);
  if (context) {
    jw_key(&w, "context_id");
    jw_z(&w, context);
  }
  jw_close(&w, '}');
  struct call *k = fresh(c, "POST", "/execute");
  k->watch = watch;
  k->body = buf_str(&body);
  k->headers = "Content-Type: application/json\r\n";
  int r = bench_box_request(c, g, INTERPRETER_PORT, k, err);
  return r ? r : expected(k, expect, err);
}

int bench_box_command(struct client *c, struct bench_box *g, const char *command, const char *expect, struct err *err)
{
  cleanup_buf struct buf body = BUF_INIT(1 << 20);
  struct jw w = JW(&body);
  buf_add(&body, "\0\0\0\0\0", 5);
  jw_open(&w, '{');
  jw_key(&w, "process");
  jw_open(&w, '{');
  jw_key(&w, "cmd");
  jw_z(&w, "/bin/bash");
  jw_key(&w, "args");
  jw_open(&w, '[');
  jw_z(&w, "-l");
  jw_z(&w, "-c");
  jw_z(&w, command);
  jw_close(&w, ']');
  jw_close(&w, '}');
  jw_close(&w, '}');
  size_t n = body.n - 5;
  for (int i = 0; i < 4; i++)
    body.p[1 + i] = (char)(n >> (24 - 8 * i));
  struct call *k = fresh(c, "POST", "/process.Process/Start");
  k->body = buf_str(&body);
  k->watch = "\"stdout\"";
  k->headers = "Content-Type: application/connect+json\r\nConnect-Protocol-Version: 1\r\nAuthorization: Basic "
               "dXNlcjo=\r\nKeepalive-Ping-Interval: 50\r\n";
  int r = bench_box_request(c, g, AGENT_PORT, k, err);
  return r ? r : expected(k, expect, err);
}

int bench_box_context(struct client *c, struct bench_box *g, char id[BOX_ID_SIZE], struct err *err)
{
  struct call *k = fresh(c, "POST", "/contexts");
  k->body = STR("{}");
  k->headers = "Content-Type: application/json\r\n";
  int r = bench_box_request(c, g, INTERPRETER_PORT, k, err);
  if (r)
    return r;
  cleanup_arena struct arena a = ARENA_INIT(1 << 16);
  struct json *v = json_read(&a, buf_str(&k->answer), 0, NULL);
  return str_copyz(json_text(json_get(v, "id"), STR("")), id, BOX_ID_SIZE) || !id[0]
             ? err_set(err, -EPROTO, "the new context has no id")
             : 0;
}

int bench_box_context_end(struct client *c, struct bench_box *g, const char *id, struct err *err)
{
  char path[100];
  snprintf(path, sizeof(path), "/contexts/%s", id);
  struct call *k = fresh(c, "DELETE", path);
  int r = bench_box_request(c, g, INTERPRETER_PORT, k, err);
  k->path = "";
  return r;
}
