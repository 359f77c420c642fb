/* SPDX-License-Identifier: Apache-2.0 */
/* sandboxes.c - the routes of one existing sandbox. */
#include "gate/api/api.h"

#include <stdio.h>

/* "Sandbox "x" doesn't exist ..." with the cause of its end where the warden still knows it. */
static void not_found(struct req *r, const struct warden_reply *reply, struct str id)
{
  struct str cause = wire_get(reply->packet, W_CAUSE);
  char when[CLOCK_TEXT];
  if (!cause.n) {
    api_error(r, 404, "Sandbox \"" STR_FMT "\" doesn't exist or you don't have access to it", STR_ARG(id));
    return;
  }
  clock_text((int64_t)wire_u64(reply->packet, W_END, 0), when);
  api_error(r, 404, "Sandbox \"" STR_FMT "\" doesn't exist or you don't have access to it: it ended at %s, " STR_FMT,
            STR_ARG(id), when, STR_ARG(cause));
}

bool sandbox_refused(struct req *r, const struct warden_reply *reply)
{
  r->pending_call = 0;
  if (!reply->status)
    return false;
  struct str id;
  struct str message = wire_get(reply->packet, W_MESSAGE);
  if (reply->status == -ENOENT && message.n && api_box_id(r, &id)) /* it is there, but not for this */
    api_error(r, 404, "Sandbox \"" STR_FMT "\" can't be used for this: " STR_FMT, STR_ARG(id), STR_ARG(message));
  else if (reply->status == -ENOENT && api_box_id(r, &id))
    not_found(r, reply, id);
  else if (reply->status != -ENOENT)
    api_warden_error_code(r, reply,
                          reply->status == -ENOTRECOVERABLE ? "sandbox_snapshot_guest_agent_unresponsive" : NULL);
  return true;
}

static bool begin_about(struct req *r, struct buf *b, enum wire_type type)
{
  struct str id;
  if (!api_box_id(r, &id))
    return false;
  wire_begin(b, type, 0, 0);
  wire_put(b, W_ID, id);
  wire_putz(b, W_TEAM, r->team.id);
  return true;
}

static void call_about(struct req *r, enum wire_type type, warden_reply_fn on_reply, int64_t timeout, unsigned mode)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  if (!begin_about(r, &b, type))
    return;
  wire_put_u64(&b, W_TIMEOUT, (uint64_t)timeout);
  wire_put_u64(&b, W_MODE, mode);
  api_call_warden(r, &b, NULL, on_reply);
}

/* ---- get, kill ---- */

/* Where a paused sandbox is kept, as a header: the API has no field for it. */
static struct http_header tier(struct str packet)
{
  static const char *const names[] = {
      [TIER_FROZEN] = "frozen", [TIER_CHECKPOINT] = "checkpoint", [TIER_FILES] = "files"};
  uint64_t n = wire_u64(packet, W_TIER, TIER_FROZEN);
  return (struct http_header){STR("X-Cloche-Pause-Tier"), str_of(n < ARRAY_LEN(names) ? names[n] : "unknown")};
}

static void got(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (sandbox_refused(r, reply))
    return;
  struct box_view v;
  box_view(reply->packet, &v);
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX * 2);
  struct jw w = JW(&b);
  box_put_listed(&w, &v, json_read(r->arena, v.config, 0, NULL), true, r);
  struct http_header h = tier(reply->packet);
  api_json_with(r, 200, buf_str(&b), &h, v.state == BOX_PAUSED ? 1 : 0);
}

void sandbox_get(struct req *r)
{
  call_about(r, WIRE_BOX_GET, got, 0, TIMEOUT_SET);
}

static void done_204(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (!sandbox_refused(r, reply))
    api_empty(r, 204);
}

void sandbox_kill(struct req *r)
{
  call_about(r, WIRE_BOX_KILL, done_204, 0, TIMEOUT_SET);
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
    api_error(r, 400, "'%s' must be from %lld to %lld seconds, not %lld", name, (long long)least, (long long)most,
              (long long)*out);
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
  seconds = MIN(seconds, (int64_t)r->team.timeout_max_s);
  call_about(r, WIRE_BOX_TIMEOUT, done_204, seconds, TIMEOUT_SET);
}

void sandbox_refresh(struct req *r)
{
  int64_t seconds = 15;
  if (whole_seconds(r, "duration", 0, 3600, &seconds))
    call_about(r, WIRE_BOX_TIMEOUT, done_204, MAX(seconds, (int64_t)15), TIMEOUT_EXTEND);
}

/* ---- pause ---- */

/* *out holds what it is where it is left out. */
static bool want_flag(struct req *r, const char *name, bool *out)
{
  const struct json *v = json_get(r->json, name);
  if (!json_given(v))
    return true;
  if (v->type != JSON_BOOL) {
    api_error(r, 400, "'%s' must be true or false", name);
    return false;
  }
  *out = v->flag;
  return true;
}

bool sandbox_want_memory(struct req *r, bool *memory)
{
  *memory = true;
  return want_flag(r, "memory", memory);
}

static void paused(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (reply->status == -EALREADY) {
    r->pending_call = 0;
    api_error(r, 409, "Sandbox \"" STR_FMT "\" is already paused", STR_ARG(r->id));
  } else if (!sandbox_refused(r, reply)) {
    struct http_header h = tier(reply->packet);
    api_take_marks(r, reply->packet);
    api_json_with(r, 204, STR_NONE, &h, 1);
  }
}

void sandbox_pause(struct req *r)
{
  bool memory, healthy = false;
  cleanup_buf struct buf b = BUF_INIT(4096);
  if (!sandbox_want_memory(r, &memory) || !want_flag(r, "requireHealthyGuest", &healthy) ||
      !begin_about(r, &b, WIRE_BOX_PAUSE))
    return;
  wire_put_u64(&b, W_COLD, !memory);
  wire_put_u64(&b, W_HEALTHY, healthy);
  api_call_warden(r, &b, NULL, paused);
}

/* ---- connect, resume ---- */

static void answer_sandbox(struct req *r, const struct warden_reply *reply, int status)
{
  struct box_view v;
  box_view(reply->packet, &v);
  api_take_marks(r, reply->packet);
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct jw w = JW(&b);
  box_put_sandbox(r, &w, &v);
  api_json(r, status, buf_str(&b));
}

static void connected(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (!sandbox_refused(r, reply))
    answer_sandbox(r, reply, wire_u64(reply->packet, W_RESUMED, 0) ? 201 : 200);
}

static bool want_timeout(struct req *r, int64_t least, int64_t *seconds)
{
  if (!whole_seconds(r, "timeout", least, INT32_MAX, seconds))
    return false;
  if (*seconds < 0)
    api_error(r, 400, "'timeout' is required: whole seconds from now");
  else if (*seconds > r->team.timeout_max_s)
    api_timeout_error(r);
  return !r->answered;
}

static void connect_for(struct req *r, int64_t least, int64_t seconds)
{
  bool memory;
  cleanup_buf struct buf b = BUF_INIT(4096);
  if (!want_timeout(r, least, &seconds) || !sandbox_want_memory(r, &memory) || !begin_about(r, &b, WIRE_BOX_CONNECT))
    return;
  wire_put_u64(&b, W_TIMEOUT, (uint64_t)seconds);
  wire_put_u64(&b, W_MODE, CONNECT_CONNECT);
  wire_put_u64(&b, W_COLD, !memory);
  api_call_warden(r, &b, NULL, connected);
}

void sandbox_connect_v1(struct req *r)
{
  connect_for(r, 0, -1);
}

void sandbox_connect_v2(struct req *r)
{
  connect_for(r, 1, 300); /* 0 would resume a paused sandbox and end it at once, its state with it */
}

static void resumed(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (reply->status == -EALREADY) {
    r->pending_call = 0;
    api_error(r, 409, "Sandbox \"" STR_FMT "\" is already running", STR_ARG(r->id));
  } else if (!sandbox_refused(r, reply)) {
    answer_sandbox(r, reply, 201);
  }
}

void sandbox_resume(struct req *r)
{
  int64_t seconds = 15;
  bool memory;
  const struct json *pause = json_get(r->json, "autoPause");
  cleanup_buf struct buf b = BUF_INIT(4096);
  if (!want_timeout(r, 1, &seconds) || !sandbox_want_memory(r, &memory))
    return;
  if (json_given(pause) && pause->type != JSON_BOOL) {
    api_error(r, 400, "'autoPause' must be true or false");
    return;
  }
  if (!begin_about(r, &b, WIRE_BOX_CONNECT))
    return;
  wire_put_u64(&b, W_TIMEOUT, (uint64_t)seconds);
  wire_put_u64(&b, W_MODE, CONNECT_RESUME);
  wire_put_u64(&b, W_COLD, !memory);
  if (json_given(pause))
    wire_put_u64(&b, W_FLAGS, pause->flag ? BOX_AUTO_PAUSE : 0);
  api_call_warden(r, &b, NULL, resumed);
}
