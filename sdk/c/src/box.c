/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes: creating, connecting, finding, pausing, copying, ending; and the handles to them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include "internal.h"

static char *copy(const char *text)
{
  return text && *text ? strdup(text) : NULL;
}

struct cloche_box *box_ref(struct cloche_box *box)
{
  box->refs++;
  return box;
}

static void box_unref(struct cloche_box *box)
{
  if (--box->refs)
    return;
  free(box->id);
  free(box->template_id);
  free(box->token);
  free(box->traffic_token);
  free(box->domain);
  free(box);
}

void cloche_box_free(struct cloche_box *box)
{
  if (!box)
    return;
  struct cloche *c = box->client;
  client_lock(c);
  box_unref(box);
  client_unlock(c);
}

static struct cloche_box *box_make(struct cloche *c, const char *id, const char *template_id, const char *token,
                                   const char *traffic_token, const char *domain)
{
  struct cloche_box *box = calloc(1, sizeof *box);
  if (!box)
    return NULL;
  *box = (struct cloche_box){c, 1, copy(id), copy(template_id), copy(token), copy(traffic_token), copy(domain)};
  bool whole = box->id && (!template_id || !*template_id || box->template_id) && (!token || !*token || box->token) &&
               (!traffic_token || !*traffic_token || box->traffic_token) && (!domain || !*domain || box->domain);
  if (whole)
    return box;
  box_unref(box);
  return NULL;
}

struct cloche_box *box_new(struct cloche *c, const struct json *j)
{
  return box_make(c, json_text(j, "sandboxID"), json_text(j, "templateID"), json_text(j, "envdAccessToken"),
                  json_text(j, "trafficAccessToken"), json_text(j, "domain"));
}

const char *cloche_box_id(const struct cloche_box *box)
{
  return box->id;
}

const char *cloche_box_template(const struct cloche_box *box)
{
  return box->template_id ? box->template_id : "";
}

const char *cloche_box_token(const struct cloche_box *box)
{
  return box->token;
}

const char *cloche_box_traffic_token(const struct cloche_box *box)
{
  return box->traffic_token;
}

const char *cloche_box_domain(const struct cloche_box *box)
{
  return box->domain ? box->domain : box->client->domain;
}

/* Texts for callers are results too, so that cloche_free() frees them. */
static enum cloche_code give_text(struct buf *b, char **out, struct cloche_error *error)
{
  char *text = b->failed ? NULL : result_new(b->len + 1);
  if (text)
    memcpy(text, b->data, b->len);
  buf_free(b);
  *out = text;
  return text ? CLOCHE_OK : op_no_memory(error);
}

enum cloche_code cloche_host(const struct cloche_box *box, int port, char **host, struct cloche_error *error)
{
  struct buf b = {0};
  buf_printf(&b, "%d-%s.%s", port, box->id, cloche_box_domain(box));
  return give_text(&b, host, error);
}

enum cloche_code cloche_attach(struct cloche *client, const char *id, const char *token, const char *domain,
                               struct cloche_box **box, struct cloche_error *error)
{
  *box = NULL;
  if (!id || !*id)
    return error_set(error, CLOCHE_EINVAL, "the sandbox ID is empty");
  *box = box_make(client, id, NULL, token, NULL, domain);
  return *box ? CLOCHE_OK : op_no_memory(error);
}

/* A URL of a file with a signature, by which the agent knows that who made it had the token. */
static enum cloche_code file_url(const struct cloche_box *box, const char *path, const char *user_name,
                                 const char *operation, int64_t expires_s, char **url, struct cloche_error *error)
{
  struct buf b = {0}, text = {0}, coded = {0};
  long long until = expires_s ? (long long)time(NULL) + expires_s : 0;
  if (box->client->sandbox_url)
    buf_puts(&b, box->client->sandbox_url);
  else
    buf_printf(&b, "https://%d-%s.%s", AGENT_PORT, box->id, cloche_box_domain(box));
  buf_puts(&b, "/files");
  if (path)
    buf_puts(&b, "?path="), buf_escape(&b, path);
  if (user_name)
    buf_puts(&b, path ? "&username=" : "?username="), buf_escape(&b, user_name);
  if (box->token) {
    buf_printf(&text, "%s:%s:%s:%s", path ? path : "", operation, user_name ? user_name : "", box->token);
    if (until)
      buf_printf(&text, ":%lld", until);
    struct sha256 s;
    unsigned char digest[32];
    sha256_begin(&s);
    sha256_add(&s, text.failed ? "" : text.data, text.len);
    sha256_end(&s, digest);
    buf_base64(&coded, digest, sizeof digest);
    if (!coded.failed)
      coded.data[--coded.len] = 0; /* without its padding */
    buf_puts(&b, path || user_name ? "&signature=v1_" : "?signature=v1_");
    buf_escape(&b, coded.failed ? "" : coded.data);
    if (until)
      buf_printf(&b, "&signature_expiration=%lld", until);
  }
  b.failed |= text.failed | coded.failed;
  buf_free(&text);
  buf_free(&coded);
  return give_text(&b, url, error);
}

enum cloche_code cloche_download_url(const struct cloche_box *box, const char *path, const char *user_name,
                                     int64_t expires_s, char **url, struct cloche_error *error)
{
  return file_url(box, path, user_name, "read", expires_s, url, error);
}

enum cloche_code cloche_upload_url(const struct cloche_box *box, const char *path, const char *user_name,
                                   int64_t expires_s, char **url, struct cloche_error *error)
{
  return file_url(box, path, user_name, "write", expires_s, url, error);
}

static enum cloche_code reply_box(struct cloche_op *op)
{
  if (!reply_good(op))
    return reply_failed(op);
  struct arena a = {0};
  enum cloche_code code = CLOCHE_OK;
  struct json *j = reply_json(op, &a, &code);
  if (j && !json_text(j, "sandboxID"))
    code = op_fail(op, CLOCHE_EPROTO, "the answer has no sandboxID");
  if (code == CLOCHE_OK && !(*(struct cloche_box **)op->out = box_new(op->client, j)))
    code = CLOCHE_ENOMEM;
  arena_free(&a);
  return code;
}

static void put_network(struct buf *b, const struct cloche_network *given)
{
  OPTIONS(cloche_network, n, given);
  buf_puts(b, "{");
  if (n.allow_out)
    buf_puts(b, "\"allowOut\":"), put_texts(b, n.allow_out), buf_puts(b, ",");
  if (n.deny_out)
    buf_puts(b, "\"denyOut\":"), put_texts(b, n.deny_out), buf_puts(b, ",");
  if (n.dns_servers)
    buf_puts(b, "\"dnsServers\":"), put_texts(b, n.dns_servers), buf_puts(b, ",");
  if (n.mask_request_host)
    buf_puts(b, "\"maskRequestHost\":"), buf_json(b, n.mask_request_host), buf_puts(b, ",");
  if (n.rules_json)
    buf_puts(b, "\"rules\":"), buf_puts(b, n.rules_json), buf_puts(b, ",");
  if (n.egress_proxy_json)
    buf_puts(b, "\"egressProxy\":"), buf_puts(b, n.egress_proxy_json), buf_puts(b, ",");
  if (n.https_ports) {
    buf_puts(b, "\"httpsPorts\":[");
    for (size_t i = 0; n.https_ports[i]; i++)
      buf_printf(b, "%s%d", i ? "," : "", n.https_ports[i]);
    buf_puts(b, "],");
  }
  if (n.no_public_traffic)
    buf_puts(b, "\"allowPublicTraffic\":false,");
}

/* Closes an object whose members each ended with a comma. */
static void put_close(struct buf *b)
{
  if (!b->failed && b->len && b->data[b->len - 1] == ',')
    b->len--;
  buf_puts(b, "}");
}

static void put_create(struct buf *b, const struct cloche_create *o)
{
  buf_puts(b, "{\"templateID\":");
  buf_json(b, o->template_id ? o->template_id : "code-interpreter-v1");
  buf_puts(b, ",\"metadata\":");
  put_pairs(b, o->metadata, o->metadata_count);
  buf_puts(b, ",\"envVars\":");
  put_pairs(b, o->envs, o->env_count);
  if (o->timeout_s)
    buf_printf(b, ",\"timeout\":%d", o->timeout_s);
  if (o->pause_on_timeout)
    buf_printf(b, ",\"autoPause\":true,\"autoPauseMemory\":%s", o->pause_without_memory ? "false" : "true");
  if (o->resume_on_traffic)
    buf_puts(b, ",\"autoResume\":{\"enabled\":true}");
  if (o->network) {
    OPTIONS(cloche_network, n, o->network);
    if (n.no_internet)
      buf_puts(b, ",\"allow_internet_access\":false");
    buf_puts(b, ",\"network\":");
    put_network(b, o->network);
    put_close(b);
  }
  for (size_t i = 0; i < o->mount_count; i++) {
    buf_puts(b, i ? ",{\"name\":" : ",\"volumeMounts\":[{\"name\":");
    buf_json(b, o->mounts[i].name);
    buf_puts(b, ",\"path\":");
    buf_json(b, o->mounts[i].path);
    buf_puts(b, i + 1 == o->mount_count ? "}]" : "}");
  }
  if (o->iam_json)
    buf_puts(b, ",\"iam\":"), buf_puts(b, o->iam_json);
  if (o->mcp_json)
    buf_puts(b, ",\"mcp\":"), buf_puts(b, o->mcp_json);
  buf_puts(b, "}");
}

enum cloche_code cloche_create(struct cloche *client, const struct cloche_create *options, struct cloche_box **box,
                               const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_create, o, options);
  *box = NULL;
  struct cloche_op *op = op_begin(client, NULL, call, OP_CONTROL, error);
  if (!op)
    return op_not_begun(call);
  char made[33] = "";
  unsigned char bytes[16];
  if (!o.idempotency_key && getrandom(bytes, sizeof bytes, GRND_NONBLOCK) == sizeof bytes)
    for (int i = 0; i < 16; i++)
      snprintf(made + 2 * i, 3, "%02x", bytes[i]);
  req_api(op, "POST", "/v2/sandboxes");
  if (o.idempotency_key || made[0])
    req_header(op, "Idempotency-Key", o.idempotency_key ? o.idempotency_key : made);
  req_json(op);
  put_create(&op->body, &o);
  op->on_reply = reply_box;
  op->out = box;
  return op_go(op, error);
}

static enum cloche_code connect_by(struct cloche *client, const char *prefix, const char *suffix, const char *id,
                                   const struct cloche_connect *options, struct cloche_box **box,
                                   const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_connect, o, options);
  *box = NULL;
  struct cloche_op *op = op_begin(client, NULL, call, OP_CONTROL, error);
  if (!op)
    return op_not_begun(call);
  req_api(op, "POST", prefix);
  req_segment(op, id);
  req_path(op, suffix);
  req_json(op);
  buf_printf(&op->body, "{\"timeout\":%d%s}", o.timeout_s ? o.timeout_s : 300, o.reboot ? ",\"memory\":false" : "");
  op->on_reply = reply_box;
  op->out = box;
  return op_go(op, error);
}

enum cloche_code cloche_connect(struct cloche *client, const char *id, const struct cloche_connect *options,
                                struct cloche_box **box, const struct cloche_call *call, struct cloche_error *error)
{
  return connect_by(client, "/v2/sandboxes", "/connect", id, options, box, call, error);
}

enum cloche_code cloche_resume(struct cloche *client, const char *id, const struct cloche_connect *options,
                               struct cloche_box **box, const struct cloche_call *call, struct cloche_error *error)
{
  return connect_by(client, "/sandboxes", "/resume", id, options, box, call, error);
}

#define AT(type, key, kind, member)                                                                                    \
  {                                                                                                                    \
    key, kind, offsetof(struct type, member), 0, NULL                                                                  \
  }

static const struct field mount_fields[] = {
    AT(cloche_volume_mount, "name", F_TEXT, name), AT(cloche_volume_mount, "path", F_TEXT, path), {0}};
static const struct model mount_model = {sizeof(struct cloche_volume_mount), mount_fields, NULL};
static const struct field info_fields[] = {AT(cloche_box_info, "sandboxID", F_TEXT, id),
                                           AT(cloche_box_info, "templateID", F_TEXT, template_id),
                                           AT(cloche_box_info, "alias", F_TEXT, alias),
                                           AT(cloche_box_info, "state", F_TEXT, state),
                                           AT(cloche_box_info, "startedAt", F_TEXT, started_at),
                                           AT(cloche_box_info, "endAt", F_TEXT, end_at),
                                           AT(cloche_box_info, "envdVersion", F_TEXT, envd_version),
                                           AT(cloche_box_info, "domain", F_TEXT, domain),
                                           AT(cloche_box_info, "envdAccessToken", F_TEXT, token),
                                           AT(cloche_box_info, "cpuCount", F_INT, cpu_count),
                                           AT(cloche_box_info, "memoryMB", F_INT, memory_mb),
                                           AT(cloche_box_info, "diskSizeMB", F_INT, disk_mb),
                                           {"metadata", F_PAIRS, offsetof(struct cloche_box_info, metadata),
                                            offsetof(struct cloche_box_info, metadata_count), NULL},
                                           {"volumeMounts", F_LIST, offsetof(struct cloche_box_info, mounts),
                                            offsetof(struct cloche_box_info, mount_count), &mount_model},
                                           AT(cloche_box_info, "lifecycle.onTimeout", F_TEXT, on_timeout),
                                           AT(cloche_box_info, "lifecycle.autoResume", F_BOOL, auto_resume),
                                           AT(cloche_box_info, "pauseMode", F_TEXT, pause_mode),
                                           AT(cloche_box_info, "network", F_RAW, network_json),
                                           AT(cloche_box_info, "", F_SELF, raw),
                                           {0}};
static const struct model info_model = {sizeof(struct cloche_box_info), info_fields, NULL};

enum cloche_code cloche_list(struct cloche *client, const struct cloche_list *options, struct cloche_box_list **list,
                             const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_list, o, options);
  struct cloche_op *op = op_begin(client, NULL, call, OP_CONTROL, error);
  if (!op)
    return op_not_begun(call);
  req_api(op, "GET", "/v2/sandboxes");
  struct buf pairs = {0};
  for (size_t i = 0; i < o.metadata_count; i++) { /* escaped twice here and once more as a query, as clients do */
    struct buf once = {0};
    buf_escape(&once, o.metadata[i].name);
    buf_puts(&pairs, i ? "&" : "");
    buf_escape(&pairs, once.failed || !once.data ? "" : once.data);
    pairs.failed |= once.failed;
    buf_free(&once);
    buf_escape(&once, o.metadata[i].value);
    buf_puts(&pairs, "=");
    buf_escape(&pairs, once.failed || !once.data ? "" : once.data);
    pairs.failed |= once.failed;
    buf_free(&once);
  }
  if (pairs.failed)
    op->failed = CLOCHE_ENOMEM;
  else if (o.metadata_count)
    req_query(op, "metadata", pairs.data);
  buf_free(&pairs);
  if (o.state)
    req_query(op, "state", o.state);
  if (o.template_id)
    req_query(op, "template", o.template_id);
  if (o.started_after)
    req_query(op, "startedAfter", o.started_after);
  if (o.ascending)
    req_query(op, "order", "asc");
  if (o.limit)
    req_query_int(op, "limit", o.limit);
  if (o.next)
    req_query(op, "nextToken", o.next);
  op->on_reply = reply_list_next;
  op->model = &info_model;
  op->out = list;
  return op_go(op, error);
}

/* The calls on one sandbox that differ in little more than method and path. */
static struct cloche_op *begin_on(struct cloche *client, const char *method, const char *id, const char *suffix,
                                  const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = op_begin(client, NULL, call, OP_CONTROL, error);
  if (!op)
    return NULL;
  req_api(op, method, "/sandboxes");
  req_segment(op, id);
  req_path(op, suffix);
  return op;
}

enum cloche_code cloche_info(struct cloche *client, const char *id, struct cloche_box_info **info,
                             const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin_on(client, "GET", id, "", call, error);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply_model;
  op->model = &info_model;
  op->out = info;
  return op_go(op, error);
}

enum cloche_code cloche_kill(struct cloche *client, const char *id, bool *existed, const struct cloche_call *call,
                             struct cloche_error *error)
{
  struct cloche_op *op = begin_on(client, "DELETE", id, "", call, error);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply_existed;
  op->out = existed;
  return op_go(op, error);
}

enum cloche_code cloche_set_timeout(struct cloche *client, const char *id, int seconds, const struct cloche_call *call,
                                    struct cloche_error *error)
{
  struct cloche_op *op = begin_on(client, "POST", id, "/timeout", call, error);
  if (!op)
    return op_not_begun(call);
  req_json(op);
  buf_printf(&op->body, "{\"timeout\":%d}", seconds);
  op->on_reply = reply_ok;
  return op_go(op, error);
}

static enum cloche_code reply_pause(struct cloche_op *op)
{
  if (!reply_good(op) && op->status != 409)
    return reply_failed(op);
  if (op->out)
    *(bool *)op->out = op->status != 409;
  return CLOCHE_OK;
}

enum cloche_code cloche_pause(struct cloche *client, const char *id, const struct cloche_pause *options, bool *paused,
                              const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_pause, o, options);
  struct cloche_op *op = begin_on(client, "POST", id, "/pause", call, error);
  if (!op)
    return op_not_begun(call);
  req_json(op);
  buf_printf(&op->body, "{\"memory\":%s%s}", o.without_memory ? "false" : "true",
             o.strict ? ",\"requireHealthyGuest\":true" : "");
  op->on_reply = reply_pause;
  op->out = paused;
  return op_go(op, error);
}

enum cloche_code cloche_set_network(struct cloche *client, const char *id, const struct cloche_network *network,
                                    const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_network, n, network);
  struct cloche_op *op = begin_on(client, "PUT", id, "/network", call, error);
  if (!op)
    return op_not_begun(call);
  req_json(op);
  put_network(&op->body, network);
  if (n.no_internet)
    buf_puts(&op->body, "\"allow_internet_access\":false,");
  put_close(&op->body);
  op->on_reply = reply_ok;
  return op_go(op, error);
}

static enum cloche_code reply_health(struct cloche_op *op)
{
  if (!reply_good(op) && op->status != 502)
    return reply_failed(op);
  *(bool *)op->out = op->status != 502;
  return CLOCHE_OK;
}

enum cloche_code cloche_is_running(struct cloche_box *box, bool *running, const struct cloche_call *call,
                                   struct cloche_error *error)
{
  struct cloche_op *op = op_begin(box->client, box, call, OP_CONTROL, error);
  if (!op)
    return op_not_begun(call);
  req_box(op, AGENT_PORT, "GET", "/health");
  op->on_reply = reply_health;
  op->out = running;
  return op_go(op, error);
}

static void free_forks(struct cloche_fork *forks, size_t count)
{
  for (size_t i = 0; i < count; i++)
    cloche_box_free(forks[i].box);
}

static enum cloche_code reply_forks(struct cloche_op *op)
{
  if (!reply_good(op))
    return reply_failed(op);
  enum cloche_code code = CLOCHE_OK;
  struct cloche_fork_list *list = result_new(sizeof *list);
  if (!list)
    return CLOCHE_ENOMEM;
  struct arena *a = result_arena(list);
  struct json *j = reply_json(op, a, &code);
  size_t n = j && j->type == JSON_ARRAY ? j->len : 0;
  struct cloche_fork *forks = arena_array(a, n, sizeof *forks);
  if (!forks)
    code = CLOCHE_ENOMEM;
  for (const struct json *e = n ? j->child : NULL; e && code == CLOCHE_OK; e = e->next) {
    struct cloche_fork *fork = &forks[list->count++];
    const struct json *box = json_get(e, "sandbox"), *failed = json_get(e, "error");
    fork->error_code = (int)json_int(json_get(failed, "code"), 0);
    fork->error = json_text(failed, "message");
    if (box && !(fork->box = box_new(op->client, box)))
      code = CLOCHE_ENOMEM;
  }
  list->items = forks;
  if (code == CLOCHE_OK)
    return answer(op, list);
  if (forks)
    free_forks(forks, list->count);
  cloche_free(list);
  return code;
}

enum cloche_code cloche_fork(struct cloche *client, const char *id, int count, int timeout_s,
                             struct cloche_fork_list **forks, const struct cloche_call *call,
                             struct cloche_error *error)
{
  struct cloche_op *op = begin_on(client, "POST", id, "/fork", call, error);
  if (!op)
    return op_not_begun(call);
  req_json(op);
  buf_printf(&op->body, "{\"count\":%d", count ? count : 1);
  if (timeout_s)
    buf_printf(&op->body, ",\"timeout\":%d", timeout_s);
  buf_puts(&op->body, "}");
  op->on_reply = reply_forks;
  op->out = forks;
  return op_go(op, error);
}

static const struct field snapshot_fields[] = {
    AT(cloche_snapshot, "snapshotID", F_TEXT, id), AT(cloche_snapshot, "names", F_TEXTS, names), {0}};
static const struct model snapshot_model = {sizeof(struct cloche_snapshot), snapshot_fields, NULL};

enum cloche_code cloche_snapshot(struct cloche *client, const char *id, const struct cloche_snapshot_options *options,
                                 struct cloche_snapshot **snapshot, const struct cloche_call *call,
                                 struct cloche_error *error)
{
  OPTIONS(cloche_snapshot_options, o, options);
  struct cloche_op *op = begin_on(client, "POST", id, "/snapshots", call, error);
  if (!op)
    return op_not_begun(call);
  req_json(op);
  buf_printf(&op->body, "{%s", o.without_memory ? "\"memory\":false," : "");
  if (o.name)
    buf_puts(&op->body, "\"name\":"), buf_json(&op->body, o.name);
  put_close(&op->body);
  op->on_reply = reply_model;
  op->model = &snapshot_model;
  op->out = snapshot;
  return op_go(op, error);
}

enum cloche_code cloche_snapshots(struct cloche *client, const char *sandbox, int limit, const char *next,
                                  struct cloche_snapshot_list **list, const struct cloche_call *call,
                                  struct cloche_error *error)
{
  struct cloche_op *op = op_begin(client, NULL, call, OP_CONTROL, error);
  if (!op)
    return op_not_begun(call);
  req_api(op, "GET", "/snapshots");
  if (sandbox)
    req_query(op, "sandboxID", sandbox);
  if (limit)
    req_query_int(op, "limit", limit);
  if (next)
    req_query(op, "nextToken", next);
  op->on_reply = reply_list_next;
  op->model = &snapshot_model;
  op->out = list;
  return op_go(op, error);
}

enum cloche_code cloche_snapshot_delete(struct cloche *client, const char *id, bool *existed,
                                        const struct cloche_call *call, struct cloche_error *error)
{
  return cloche_template_delete(client, id, existed, call, error);
}
