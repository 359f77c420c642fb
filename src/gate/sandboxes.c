/* sandboxes.c - what may be asked about one existing sandbox. */
#include "gate/api.h"

#include <stdio.h>

/* "Sandbox "x" doesn't exist ..." with the cause of its end where the warden still knows it. */
static void not_found(struct req *r, const struct answer *a, struct str id)
{
  struct str cause = wire_get(a->packet, W_CAUSE);
  char when[CLOCK_TEXT];
  if (!cause.n) {
    api_error(r, 404, "Sandbox \"" STR_FMT "\" doesn't exist or you don't have access to it", STR_ARG(id));
    return;
  }
  clock_text((int64_t)wire_u64(a->packet, W_END, 0), when);
  api_error(r, 404, "Sandbox \"" STR_FMT "\" doesn't exist or you don't have access to it: it ended at %s, " STR_FMT, STR_ARG(id), when,
            STR_ARG(cause));
}

static bool refused(struct req *r, const struct answer *a)
{
  r->ask = 0;
  if (!a->status)
    return false;
  struct str id;
  if (a->status == -ENOENT && api_box_id(r, &id))
    not_found(r, a, id);
  else if (a->status != -ENOENT)
    api_warden_error(r, a);
  return true;
}

static void ask_about(struct req *r, enum wire_type type, answer_fn on_item, answer_fn on_reply, int64_t timeout, enum timeout_mode mode)
{
  struct str id;
  if (!api_box_id(r, &id))
    return;
  cleanup_buf struct buf b = BUF_INIT(4096);
  wire_begin(&b, type, 0, 0);
  wire_put(&b, W_ID, id);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put_u64(&b, W_TIMEOUT, (uint64_t)timeout);
  wire_put_u64(&b, W_MODE, mode);
  api_ask(r, &b, on_item, on_reply);
}

/* ---- get, kill ---- */

static void got(const struct answer *a, void *arg)
{
  struct req *r = arg;
  if (refused(r, a))
    return;
  struct box_view v;
  box_view(a->packet, &v);
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX * 2);
  struct jw w = JW(&b);
  box_put_listed(&w, &v, json_read(r->arena, v.config, 0, NULL), true, r->gate);
  api_json(r, 200, buf_str(&b));
}

void sandbox_get(struct req *r)
{
  ask_about(r, WIRE_BOX_GET, NULL, got, 0, TIMEOUT_SET);
}

static void done_204(const struct answer *a, void *arg)
{
  struct req *r = arg;
  if (!refused(r, a))
    api_empty(r, 204);
}

void sandbox_kill(struct req *r)
{
  ask_about(r, WIRE_BOX_KILL, NULL, done_204, 0, TIMEOUT_SET);
}

/* ---- timeouts ---- */

static bool whole_seconds(struct req *r, const char *name, int64_t least, int64_t most, int64_t *out)
{
  const struct json *v = json_get(r->json, name);
  if (!json_given(v))
    return true;
  if (v->type != JSON_NUMBER || json_int(v, out)) {
    api_error(r, 400, "'%s' must be a whole number of seconds", name);
    return false;
  }
  if (*out < least || *out > most) {
    api_error(r, 400, "'%s' must be from %lld to %lld seconds, not %lld", name, (long long)least, (long long)most, (long long)*out);
    return false;
  }
  return true;
}

void sandbox_timeout(struct req *r)
{
  int64_t seconds = -1;
  if (!whole_seconds(r, "timeout", 0, INT32_MAX, &seconds))
    return;
  if (seconds < 0) {
    api_error(r, 400, "'timeout' is required: whole seconds from now");
    return;
  }
  seconds = MIN(seconds, (int64_t)r->gate->config->timeout_max_s);
  ask_about(r, WIRE_BOX_TIMEOUT, NULL, done_204, seconds, TIMEOUT_SET);
}

void sandbox_refresh(struct req *r)
{
  int64_t seconds = 15;
  if (whole_seconds(r, "duration", 0, 3600, &seconds))
    ask_about(r, WIRE_BOX_TIMEOUT, NULL, done_204, MAX(seconds, (int64_t)15), TIMEOUT_EXTEND);
}

/* ---- connect ---- */

static void connected(const struct answer *a, void *arg)
{
  struct req *r = arg;
  if (refused(r, a))
    return;
  struct box_view v;
  box_view(a->packet, &v);
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct jw w = JW(&b);
  box_put_sandbox(r->gate, &w, &v);
  api_json(r, 200, buf_str(&b));
}

static void connect_for(struct req *r, int64_t seconds, bool required)
{
  unsigned max = r->gate->config->timeout_max_s;
  int64_t asked = required ? -1 : seconds;
  if (!whole_seconds(r, "timeout", 0, INT32_MAX, &asked))
    return;
  if (asked < 0)
    api_error(r, 400, "'timeout' is required: whole seconds from now");
  else if (asked > max)
    api_error(r, 400, "Timeout cannot be greater than %u hours", max / 3600);
  else
    ask_about(r, WIRE_BOX_TIMEOUT, NULL, connected, asked, TIMEOUT_EXTEND);
}

void sandbox_connect_v1(struct req *r)
{
  connect_for(r, 0, true);
}

void sandbox_connect_v2(struct req *r)
{
  connect_for(r, 300, false);
}

/* ---- metrics ---- */

static void sample_item(const struct answer *a, void *arg)
{
  struct req *r = arg;
  struct jw *w = r->state;
  struct str raw = wire_get(a->packet, W_SAMPLE);
  struct wire_sample s;
  if (raw.n != sizeof(s))
    return;
  memcpy(&s, raw.p, sizeof(s));
  char when[CLOCK_TEXT];
  clock_text(s.wall_us, when);
  const struct {
    const char *name;
    uint64_t value;
  } bytes[] = {{"memUsed", s.mem_used}, {"memTotal", s.mem_total}, {"memCache", s.mem_cache}, {"diskUsed", s.disk_used}, {"diskTotal", s.disk_total}};
  jw_open(w, '{');
  jw_key(w, "timestamp");
  jw_z(w, when);
  jw_key(w, "timestampUnix");
  jw_int(w, s.wall_us / 1000000);
  jw_key(w, "cpuCount");
  jw_uint(w, s.cpus);
  jw_key(w, "cpuUsedPct");
  jw_double(w, s.cpu_pct, 2);
  for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
    jw_key(w, bytes[i].name);
    jw_uint(w, bytes[i].value);
  }
  jw_close(w, '}');
}

static void samples_done(const struct answer *a, void *arg)
{
  struct req *r = arg;
  struct jw *w = r->state;
  if (refused(r, a))
    return;
  jw_close(w, ']');
  api_json(r, 200, buf_str(w->b));
}

static bool unix_seconds(struct req *r, const char *name, int64_t *out)
{
  struct str text = api_query(r, name);
  if (!text.n || !str_i64(text, out))
    return true;
  api_error(r, 400, "'%s' must be whole unix seconds, not '" STR_FMT "'", name, STR_ARG(text));
  return false;
}

void sandbox_metrics(struct req *r)
{
  int64_t start = 0, end = INT64_MAX / 1000000;
  struct str id;
  if (!unix_seconds(r, "start", &start) || !unix_seconds(r, "end", &end) || !api_box_id(r, &id))
    return;
  if (start > end) {
    api_error(r, 400, "'start' (%lld) lies after 'end' (%lld)", (long long)start, (long long)end);
    return;
  }
  struct jw *w = arena_alloc(r->arena, sizeof(*w));
  *w = JW(&r->body);
  buf_clear(&r->body);
  jw_open(w, '[');
  r->state = w;
  cleanup_buf struct buf b = BUF_INIT(4096);
  wire_begin(&b, WIRE_BOX_USAGE, 0, 0);
  wire_put(&b, W_ID, id);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put_u64(&b, W_FROM, (uint64_t)start * 1000000);
  wire_put_u64(&b, W_TO, (uint64_t)MIN(end, INT64_MAX / 1000000) * 1000000);
  api_ask(r, &b, sample_item, samples_done);
}
