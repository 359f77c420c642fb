/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_create.c - POST /sandboxes and POST /v2/sandboxes: checks everything a client may send, chooses the id,
 * writes the two JSON texts the warden stores and the agent reads, and requests a launch. */
#include "gate/api/api.h"
#include "gate/api/sandbox/idempotency_key.h"
#include "gate/api/volume/mount_list.h"
#include "gate/api/sandbox/identity_tokens.h"
#include "gate/api/sandbox/network.h"
#include "wire/isolation.h"

#include <stdio.h>

#define STRINGS_MAX 65536 /* bytes of metadata or variables, names and values together */

struct create_request {
  struct str ref;
  int64_t timeout;
  unsigned flags;
  const struct json *metadata, *envs;
  struct network network;
  struct str idempotency_key; /* empty = none */
};

/* ---- reading ---- */

static bool want_bool(struct req *r, const struct json *body, const char *name, bool *out)
{
  const struct json *v = json_get(body, name);
  if (!json_given(v))
    return true;
  if (v->type != JSON_BOOL) {
    api_error(r, 400, "'%s' must be true or false", name);
    return false;
  }
  *out = v->flag;
  return true;
}

static bool want_strings(struct req *r, const char *name, const struct json **out)
{
  const struct json *v = json_get(r->json, name);
  size_t total = 0;
  if (!json_given(v))
    return true;
  if (v->type != JSON_OBJECT) {
    api_error(r, 400, "'%s' must be an object of strings", name);
    return false;
  }
  for (const struct json *k = v->kids; k; k = k->next) {
    if (k->type != JSON_STRING || str_find(k->text, 0) >= 0 || str_find(k->key, 0) >= 0) {
      api_error(r, 400, "'%s.%.100s' must be a string without NUL", name, k->key.p);
      return false;
    }
    total += k->key.n + k->text.n;
  }
  if (total > STRINGS_MAX) {
    api_error(r, 400, "'%s' holds %zu bytes; at most %d are allowed", name, total, STRINGS_MAX);
    return false;
  }
  *out = v;
  return true;
}

static bool want_timeout(struct req *r, int64_t *out)
{
  const struct json *v = json_get(r->json, "timeout");
  if (json_given(v) && (v->type != JSON_NUMBER || json_int(v, out))) {
    api_error(r, 400, "'timeout' must be a whole number of seconds");
    return false;
  }
  if (*out <= 0) {
    api_error(r, 400, "Timeout must be greater than 0 seconds, not %lld", (long long)*out);
    return false;
  }
  if (*out > r->team.timeout_max_s) {
    api_timeout_error(r);
    return false;
  }
  return true;
}

static bool want_lifecycle(struct req *r, struct create_request *o)
{
  bool pause = false, memory = true, resume = false;
  if (!want_bool(r, r->json, "autoPause", &pause) || !want_bool(r, r->json, "autoPauseMemory", &memory) ||
      !want_bool(r, json_get(r->json, "autoResume"), "enabled", &resume))
    return false;
  if (!memory && !pause) {
    api_error(r, 400, "'autoPauseMemory' false needs 'autoPause' true");
    return false;
  }
  if (!memory && resume) {
    api_error(r, 400, "'autoResume' needs a pause with memory: 'autoPauseMemory' can't be false");
    return false;
  }
  o->flags |= (pause ? BOX_AUTO_PAUSE : 0) | (memory ? 0 : BOX_AUTO_COLD) | (resume ? BOX_AUTO_RESUME : 0);
  return true;
}

/* A field of ours: which kernel is between the sandbox and the host. */
static bool want_isolation(struct req *r, struct create_request *o)
{
  const struct json *v = json_get(r->json, "isolation");
  unsigned isolation = ISOLATION_ANY;
  if (!json_given(v))
    return true;
  isolation_read(json_text(v, STR_NONE), &isolation);
  o->flags |= isolation == ISOLATION_MICROVM ? BOX_MICROVM : isolation == ISOLATION_PROCESS ? BOX_PROCESS : 0;
  if (isolation != ISOLATION_ANY)
    return true;
  api_error(r, 400, "'isolation' must be \"process\" or \"microvm\"");
  return false;
}

static bool want_network(struct req *r, struct create_request *o)
{
  struct err err = ERR_NONE;
  int e = network_read(json_get(r->json, "network"), json_get(r->json, "allow_internet_access"), GATE_NETWORK_FEATURES,
                       &o->network, &err);
  if (e) {
    api_error(r, e == -EPERM ? 403 : 400, "%s", err.msg);
    return false;
  }
  if (!o->network.public && !(o->flags & BOX_SECURE)) {
    api_error(
        r, 400,
        "You cannot create a sandbox without public access unless you enable secure envd access via 'secure' flag.");
    return false;
  }
  o->flags |= o->network.public ? 0 : BOX_PRIVATE;
  o->flags |= !o->network.internet || o->network.internet->flag ? BOX_INTERNET : 0;
  return true;
}

static bool want_idempotency(struct req *r, struct str *key)
{
  const struct http_head *head = http_x_head(r->x);
  struct err err = ERR_NONE;
  unsigned given = 0;
  for (size_t i = 0; i < head->nheaders; i++)
    if (str_ieq(head->headers[i].name, STR("idempotency-key"))) {
      given++;
      *key = head->headers[i].value;
    }
  if (given > 1)
    err_set(&err, -EINVAL, "the header Idempotency-Key is given %u times; one request has one key", given);
  else if (given)
    idempotency_key_check(*key, &err);
  if (err.code)
    api_error(r, 400, "%s", err.msg);
  return !err.code;
}

static bool read_create(struct req *r, struct create_request *o)
{
  o->ref = json_text(json_get(r->json, "templateID"), STR_NONE);
  if (!o->ref.n) {
    api_error(r, 400, "'templateID' is required: a template's name or id");
    return false;
  }
  return want_timeout(r, &o->timeout) && want_isolation(r, o) && want_lifecycle(r, o) &&
         want_strings(r, "metadata", &o->metadata) && want_strings(r, "envVars", &o->envs) && want_network(r, o);
}

/* ---- writing ---- */

static void put_config(struct buf *b, const struct create_request *o)
{
  struct jw w = JW(b);
  jw_open(&w, '{');
  if (o->metadata) {
    jw_key(&w, "metadata");
    jw_value(&w, o->metadata);
  }
  if (o->network.internet) {
    jw_key(&w, "allowInternetAccess");
    jw_value(&w, o->network.internet);
  }
  if (network_said(&o->network)) {
    jw_key(&w, "network");
    network_put_open(&w, &o->network);
  }
  jw_close(&w, '}');
}

/* The warden adds the access token. */
static void put_init(struct buf *b, const struct create_request *o)
{
  struct jw w = JW(b);
  jw_open(&w, '{');
  if (o->envs) {
    jw_key(&w, "envVars");
    jw_value(&w, o->envs);
  }
  jw_close(&w, '}');
}

/* Where the time went, for `cloche bench --trace create` and everyone's developer tools. */
static size_t put_timing(const struct req *r, struct str packet, char *out, size_t size)
{
  struct wire_trace t;
  struct str field = wire_get(packet, W_TRACE);
  if (field.n != sizeof(t))
    return 0;
  memcpy(&t, field.p, sizeof(t));
  const struct {
    const char *name;
    int64_t from, to;
  } steps[] = {{"gate", r->began_us, r->called_us}, {"to-warden", r->called_us, t.came_us},
               {"jail", t.came_us, t.boot_us},      {"agent", t.boot_us, t.ready_us},
               {"store", t.ready_us, t.kept_us},    {"to-gate", t.kept_us, clock_mono_us()}};
  size_t n = 0;
  for (size_t i = 0; i < ARRAY_LEN(steps) && n < size; i++)
    n += (size_t)snprintf(out + n, size - n, "%s%s;dur=%.3f", i ? ", " : "", steps[i].name,
                          (double)(steps[i].to - steps[i].from) / 1e3);
  return MIN(n, size - 1);
}

/* For programs: will the same request ever succeed? */
static const char *create_error_code(int warden_status)
{
  switch (-warden_status) {
  case EKEYREJECTED:
    return "idempotency_request_mismatch";
  case EINPROGRESS:
    return "idempotency_in_progress";
  case EOWNERDEAD:
    return "idempotency_outcome_unknown";
  }
  switch (api_failure_of(warden_status, 0, true).status) {
  case 500:
  case 503:
    return "sandbox_create_failed";
  case 400:
  case 403:
  case 507:
    return "sandbox_create_refused";
  default:
    return NULL; /* the status says it: no such template, or a limit */
  }
}

static void created(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  r->pending_call = 0;
  if (reply->status) {
    api_warden_error_code(r, reply, create_error_code(reply->status));
    return;
  }
  struct box_view v;
  box_view(reply->packet, &v);
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct jw w = JW(&b);
  r->made = v.id;
  api_take_marks(r, reply->packet);
  box_put_sandbox(r, &w, &v);
  char timing[256];
  struct http_header h = {STR("Server-Timing"), {timing, put_timing(r, reply->packet, timing, sizeof(timing))}};
  api_json_with(r, 201, buf_str(&b), &h, h.value.n ? 1 : 0);
}

/* The client's name for this request; the warden executes it once. */
static bool put_idempotency(struct req *r, const struct create_request *o, struct buf *packet)
{
  uint8_t print[SHA256_LEN];
  if (!o->idempotency_key.n || buf_failed(packet))
    return true;
  if (idempotency_fingerprint(r->arena, buf_str(packet), print)) {
    api_error(r, 503, "no room to compare this request with others of its Idempotency-Key; nothing was created");
    return false;
  }
  wire_put(packet, W_IDEMPOTENCY_KEY, o->idempotency_key);
  wire_put(packet, W_FINGERPRINT, str_make(print, sizeof(print)));
  return true;
}

static void create(struct req *r, struct create_request *o)
{
  cleanup_buf struct buf tokens = BUF_INIT(16384);
  struct err err = ERR_NONE;
  if (!read_create(r, o))
    return;
  if (identity_tokens_read(json_get(r->json, "iam"), &tokens, &err)) {
    api_error(r, 400, "%s", err.msg);
    return;
  }
  char id[BOX_ID_SIZE] = "i";
  random_id(id + 1, 20);
  cleanup_buf struct buf packet = BUF_INIT(WIRE_MAX), config = BUF_INIT(WIRE_MAX), init = BUF_INIT(WIRE_MAX),
                         allow = BUF_INIT(WIRE_MAX), deny = BUF_INIT(WIRE_MAX), mounts = BUF_INIT(MOUNT_LINES_MAX),
                         faults = BUF_INIT(MOUNT_FAULTS_MAX * 2);
  put_config(&config, o);
  put_init(&init, o);
  wire_begin(&packet, WIRE_BOX_CREATE, 0, 0);
  wire_putz(&packet, W_ID, id);
  wire_putz(&packet, W_TEAM, r->team.id);
  wire_put(&packet, W_REF, o->ref);
  wire_put_u64(&packet, W_TIMEOUT, (uint64_t)o->timeout);
  wire_put_u64(&packet, W_FLAGS, o->flags);
  wire_put(&packet, W_CONFIG, buf_str(&config));
  wire_put(&packet, W_INIT, buf_str(&init));
  network_allow_lines(&allow, &o->network);
  network_lines(&deny, o->network.deny_out);
  wire_put(&packet, W_ALLOW, buf_str(&allow));
  wire_put(&packet, W_DENY, buf_str(&deny));
  if (!sandbox_put_egress(r, &o->network, &packet))
    return;
  mount_list_read(json_get(r->json, "volumeMounts"), &mounts, &faults);
  if (mounts.n)
    wire_put(&packet, W_MOUNTS, buf_str(&mounts));
  if (faults.n) /* the warden adds names that it does not know, and refuses */
    wire_put(&packet, W_MOUNT_FAULTS, buf_str(&faults));
  if (tokens.n)
    wire_put(&packet, W_TOKENS, buf_str(&tokens));
  if (buf_failed(&config) || buf_failed(&init) || buf_failed(&mounts) || buf_failed(&faults))
    packet.failed = -ENOBUFS;
  if (put_idempotency(r, o, &packet))
    api_call_warden(r, &packet, NULL, created);
}

void sandbox_create_v1(struct req *r)
{
  struct create_request o = {.timeout = 15};
  bool secure = false;
  if (!want_bool(r, r->json, "secure", &secure))
    return;
  o.flags = BOX_FIRST_API | (secure ? BOX_SECURE : 0);
  create(r, &o);
}

void sandbox_create_v2(struct req *r)
{
  struct create_request o = {.timeout = 300, .flags = BOX_SECURE};
  if (want_idempotency(r, &o.idempotency_key))
    create(r, &o);
}
