/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - see server.h. One POST is one message. A request is answered as JSON, or, once there is something to tell
 * before its end (progress, or that it still runs), as a stream of events. */
#include "mcp/server.h"

#include "mcp/mcp.h"
#include "mcp/mcp_role.h"
#include "net/http.h"
#include "wire/control.h"
#include "wire/ipc.h"
#include "wire/mcp_link.h"
#include <cloche.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define SESSION_ID     32 /* hexadecimal digits */
#define QUIET_MS       15000
#define SWEEP_MS       30000
#define CHANNELS_MAX   256                 /* gates */
#define API_URL        "http://127.0.0.1"  /* never dialled: connections are pairs of sockets */
#define ANSWER_MAX     ((size_t)4 << 20)   /* what a call keeps of each of a sandbox's streams; some of it is told */
#define CALL_HOLDS     (4 * ANSWER_MAX)    /* two streams in buffers that double; counted while it is under way */
#define ROLE_HOLDS     ((uint64_t)3 << 30) /* of all teams together; the limit in mcp_role.h is a quarter more */
#define TEAM_SIZE      64
#define MESSAGE_TIMES  5 /* a message, and what is read of it (session.c) */
#define NAME_MAX_BYTES 64

struct channel {
  struct role *role;
  struct ipc *ipc;
};

struct role {
  const struct mcp_role_config *config;
  uv_loop_t *loop;
  struct ipc *control;
  struct http_server *server;
  VEC(struct channel *) channels;
  struct map sessions; /* hash of the key + id -> struct web_session */
  struct map teams;    /* name -> struct team */
  uint64_t bytes;      /* of all of them */
  uv_timer_t sweeper;
};

struct team {
  size_t sessions;
  uint64_t bytes; /* of messages under way, as they are counted */
};

struct web_session {
  struct role *role;
  char place[SHA256_LEN * 2 + SESSION_ID + 1], id[SESSION_ID + 1], team[TEAM_SIZE];
  struct mcp_session *mcp;
  int64_t used_us;
  struct request *closing; /* a DELETE that waits for its end */
};

struct request {
  struct role *role;
  struct http_x *x;
  struct buf body;
  uint64_t counted;            /* of its team's bytes */
  struct web_session *session; /* until the answer is whole */
  struct web_session *ending;  /* that a DELETE waits for */
  struct mcp_call *call;
  uv_timer_t *quiet;
  bool fresh;   /* it began the session, whose id is told */
  bool events;  /* the client takes a stream */
  bool stream;  /* it was begun */
  bool replied; /* the answer is whole */
};

/* ---- the way to the API ---- */

/* Any gate will do. */
static int open_api(void *arg)
{
  struct role *role = arg;
  int pair[2];
  if (!role->channels.n || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair)) {
    log_warn("no way to the API: %s", role->channels.n ? strerrordesc_np(errno) : "no gate is linked");
    return -1;
  }
  uint8_t any;
  random_bytes(&any, 1);
  char letter = MCP_LINK_API;
  int r = ipc_send(role->channels.p[any % role->channels.n]->ipc, str_make(&letter, 1), pair[1]);
  close(pair[1]);
  if (r) {
    log_warn("no way to the API: %s", strerrordesc_np(-r));
    close(pair[0]);
  }
  return r ? -1 : pair[0];
}

/* ---- sessions ---- */

static struct str team_of(const struct request *r)
{
  return str_sub(http_header(http_x_head(r->x), MCP_TEAM_HEADER), 0, TEAM_SIZE - 1);
}

static void team_count(struct role *role, struct str name, int sessions, int64_t bytes)
{
  struct team *t = map_get(&role->teams, name);
  if (!t)
    map_put(&role->teams, name, t = xcalloc(1, sizeof(*t)));
  t->sessions = (size_t)((ptrdiff_t)t->sessions + sessions);
  t->bytes = (uint64_t)((int64_t)t->bytes + bytes);
  role->bytes = (uint64_t)((int64_t)role->bytes + bytes);
  if (!t->sessions && !t->bytes)
    free(map_del(&role->teams, name));
}

/* What a request may take until it is answered. False: its team, or all together, have too much under way. */
static bool hold(struct request *r, uint64_t more)
{
  const struct team *t = map_get(&r->role->teams, team_of(r));
  if ((t ? t->bytes : 0) + more > (uint64_t)r->role->config->team_mb << 20 || r->role->bytes + more > ROLE_HOLDS)
    return false;
  team_count(r->role, team_of(r), 0, (int64_t)more);
  r->counted += more;
  return true;
}

static void place_of(struct str key, struct str id, char *out, size_t size)
{
  uint8_t hash[SHA256_LEN];
  char hex[SHA256_LEN * 2 + 1];
  sha256_of(key.p, key.n, hash);
  hex_encode(hash, sizeof(hash), hex);
  snprintf(out, size, "%s" STR_FMT, hex, STR_ARG(id));
}

static void session_gone(void *arg)
{
  free(arg);
}

static void session_forget(struct web_session *s)
{
  map_del(&s->role->sessions, str_of(s->place));
  team_count(s->role, str_of(s->team), -1, 0);
}

static int read_options(struct request *r, struct mcp_options *o, struct buf *name, struct buf *template_id,
                        struct err *err)
{
  struct str query = http_x_head(r->x)->query;
  cleanup_buf struct buf end = BUF_INIT(16), idle = BUF_INIT(16);
  uint64_t seconds = r->role->config->idle_s;
  if (query_get(query, "name", name) < 0 || query_get(query, "template", template_id) < 0 ||
      query_get(query, "end", &end) < 0 || query_get(query, "idle", &idle) < 0)
    return err_set(err, -EINVAL, "a value of the URL's query is too long or can't be decoded");
  if (end.n && !str_is(buf_str(&end), "kill") && !str_is(buf_str(&end), "pause"))
    return err_set(err, -EINVAL, "'end' must be kill or pause");
  if (idle.n && (str_u64(buf_str(&idle), &seconds) || seconds < 30 || seconds > 86400))
    return err_set(err, -EINVAL, "'idle' must be from 30 to 86400 seconds");
  o->name = buf_str(name);
  o->template_id = buf_str(template_id);
  o->end = str_is(buf_str(&end), "kill") ? MCP_END_KILL : end.n ? MCP_END_PAUSE : MCP_END_DEFAULT;
  o->idle_s = (unsigned)seconds;
  return 0;
}

static int session_open(struct request *r, struct str key, struct str id, bool resumed, struct err *err)
{
  struct role *role = r->role;
  const struct mcp_role_config *c = role->config;
  struct str team = team_of(r);
  cleanup_buf struct buf name = BUF_INIT(NAME_MAX_BYTES), template_id = BUF_INIT(256), secret = BUF_INIT(256);
  struct mcp_options o = {.id = id,
                          .resumed = resumed,
                          .limits = {.boxes = c->session_boxes,
                                     .calls = c->session_calls,
                                     .text_max = (size_t)c->text_kb << 10,
                                     .result_max = (size_t)c->result_kb << 10,
                                     .timeout_s = c->timeout_s}};
  const struct team *of_team = map_get(&role->teams, team);
  if (role->sessions.n >= c->sessions || (of_team && of_team->sessions >= c->team_sessions))
    return err_set(err, -EAGAIN, "too many sessions at once ('mcp_sessions' %u, of one team 'mcp_team_sessions' %u)",
                   c->sessions, c->team_sessions);
  if (read_options(r, &o, &name, &template_id, err))
    return err->code;
  struct web_session *s = xcalloc(1, sizeof(*s));
  s->role = role;
  str_copyz(team, s->team, sizeof(s->team));
  str_copyz(id, s->id, sizeof(s->id));
  place_of(key, id, s->place, sizeof(s->place));
  buf_adds(&secret, key);
  struct cloche_config config = {.size = sizeof(config),
                                 .url = API_URL,
                                 .key = buf_z(&secret),
                                 .user_agent = "mcp",
                                 .max_answer = ANSWER_MAX,
                                 .open_socket = open_api,
                                 .open_socket_arg = role};
  s->mcp = mcp_session_new(role->loop, &config, &o, err);
  explicit_bzero(secret.p, secret.n);
  if (!s->mcp) {
    free(s);
    return err->code;
  }
  map_put(&role->sessions, str_of(s->place), s);
  team_count(role, str_of(s->team), 1, 0);
  r->session = s;
  return 0;
}

/* Those that nobody uses. Their sandboxes have their own time; a client that comes back finds its own by its id. */
static void sweep(uv_timer_t *t)
{
  struct role *role = t->data;
  void *value;
  for (size_t i = 0; map_next(&role->sessions, &i, NULL, &value);) {
    struct web_session *s = value;
    if (mcp_session_calls(s->mcp) || clock_mono_us() - s->used_us < (int64_t)role->config->idle_s * 1000000)
      continue;
    session_forget(s);
    mcp_session_leave(s->mcp, session_gone, s);
  }
}

/* ---- answers ---- */

static void quiet_closed(uv_handle_t *h)
{
  free(h);
}

static void quiet_end(struct request *r)
{
  if (r->quiet)
    uv_close((uv_handle_t *)steal(&r->quiet), quiet_closed);
}

static void reply(struct request *r, int status, struct str body)
{
  struct http_header h[3];
  size_t n = 0;
  if (body.n)
    h[n++] = (struct http_header){STR("Content-Type"), STR("application/json")};
  if (r->fresh && r->session)
    h[n++] = (struct http_header){STR("Mcp-Session-Id"), str_of(r->session->id)};
  if (status == 405)
    h[n++] = (struct http_header){STR("Allow"), STR("POST, DELETE")};
  r->replied = true;
  quiet_end(r);
  http_reply_with(r->x, status, h, n, body);
  r->session = NULL;
}

static void reply_error(struct request *r, int status, int code, const char *message)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  mcp_error_add(&b, STR_NONE, code, message);
  reply(r, status, buf_str(&b));
}

static void stream_begin(struct request *r)
{
  struct http_header h[] = {{STR("Content-Type"), STR("text/event-stream")},
                            {STR("Cache-Control"), STR("no-cache")},
                            {STR("Mcp-Session-Id"), str_of(r->session->id)}};
  r->stream = true;
  http_respond(r->x, 200, h, r->fresh ? 3 : 2, HTTP_CHUNKED);
}

static void on_message(struct str message, bool last, void *arg)
{
  struct request *r = arg;
  struct net *net = http_gather(r->role->loop);
  r->session->used_us = clock_mono_us();
  if (last && !r->stream) {
    reply(r, message.n ? 200 : 202, message);
  } else if (last || (r->events && !http_congested(r->x))) { /* who reads slowly misses progress, not the response */
    if (!r->stream)
      stream_begin(r);
    if (message.n) {
      http_send(r->x, STR("event: message\ndata: "));
      http_send(r->x, message);
      http_send(r->x, STR("\n\n"));
    }
    if (last) {
      r->replied = true;
      quiet_end(r);
      http_end(r->x);
      r->session = NULL;
    }
  }
  http_let_go(net);
}

/* A client, or a proxy on the way, that hears nothing for long would give up. */
static void on_quiet(uv_timer_t *t)
{
  struct request *r = t->data;
  if (!r->stream)
    stream_begin(r);
  http_send(r->x, STR(": still running\n\n"));
}

/* ---- requests ---- */

static struct str key_of(const struct http_head *h)
{
  struct str key = http_header(h, "x-api-key");
  return key.n ? key : http_bearer(h);
}

static bool id_formed(struct str id)
{
  uint8_t raw[SESSION_ID / 2];
  return id.n == SESSION_ID && !hex_decode(id, raw, sizeof(raw));
}

static bool begins(struct str body)
{
  cleanup_arena struct arena a = ARENA_INIT((size_t)64 << 20);
  struct json_error why;
  struct json *m = json_read(&a, body, JSON_REPAIR_UTF8, &why);
  return str_is(json_text(json_get(m, "method"), STR("")), "initialize");
}

/* The session that a message is for; false: answered. */
static bool find_session(struct request *r, bool fresh)
{
  const struct http_head *h = http_x_head(r->x);
  struct str key = key_of(h), id = http_header(h, "mcp-session-id");
  char made[SESSION_ID + 1], place[SHA256_LEN * 2 + SESSION_ID + 1];
  uint8_t raw[SESSION_ID / 2];
  struct err err = ERR_NONE;
  if (fresh) {
    random_bytes(raw, sizeof(raw));
    hex_encode(raw, sizeof(raw), made);
    id = str_of(made);
    r->fresh = true;
  } else if (!id.n) {
    reply_error(r, 400, MCP_INVALID_REQUEST, "the header Mcp-Session-Id is missing: initialize a session first");
    return false;
  } else if (!id_formed(id)) {
    reply_error(r, 404, MCP_INVALID_REQUEST, "no such session: initialize one");
    return false;
  }
  place_of(key, id, place, sizeof(place));
  r->session = map_get(&r->role->sessions, str_of(place));
  if (!r->session && session_open(r, key, id, !fresh, &err)) {
    reply_error(r, err.code == -EAGAIN ? 429 : 400, MCP_INVALID_REQUEST, err.msg);
    return false;
  }
  r->session->used_us = clock_mono_us();
  return true;
}

static void take_message(struct request *r)
{
  struct err err = ERR_NONE;
  int code;
  if (!find_session(r, begins(buf_str(&r->body))))
    return;
  r->events = http_header_has(http_x_head(r->x), "accept", "text/event-stream");
  if (mcp_session_take(r->session->mcp, buf_str(&r->body), on_message, r, &r->call, &code, &err))
    reply_error(r, 400, code, err.msg);
  else if (!r->call && !r->replied)
    reply(r, 202, STR_NONE);
  buf_free(&r->body); /* the call has what it needs of it */
  if (!r->call || !r->events)
    return;
  r->quiet = xcalloc(1, sizeof(*r->quiet));
  uv_timer_init(r->role->loop, r->quiet);
  r->quiet->data = r;
  uv_timer_start(r->quiet, on_quiet, QUIET_MS, QUIET_MS);
}

static void session_ended(void *arg)
{
  struct web_session *s = arg;
  if (s->closing) {
    s->closing->ending = NULL;
    reply(s->closing, 204, STR_NONE);
  }
  free(s);
}

static void end_session(struct request *r)
{
  if (!find_session(r, false))
    return;
  struct web_session *s = r->session;
  s->closing = r;
  r->ending = s;
  r->session = NULL;
  session_forget(s);
  mcp_session_end(s->mcp, session_ended, s);
}

static void refuse_busy(struct request *r)
{
  reply_error(r, 429, MCP_INVALID_REQUEST,
              "too many messages and calls under way; of one team 'mcp_team_mb' MiB, each call counts for 16");
}

static void on_body(struct http_x *x, struct str chunk)
{
  struct request *r = http_x_data(x);
  if (r->replied)
    return;
  if (hold(r, (uint64_t)chunk.n * MESSAGE_TIMES))
    buf_adds(&r->body, chunk);
  else
    refuse_busy(r);
}

static void on_body_end(struct http_x *x)
{
  struct request *r = http_x_data(x);
  const struct http_head *h = http_x_head(x);
  if (r->replied)
    return;
  if (buf_failed(&r->body))
    reply_error(r, 413, MCP_INVALID_REQUEST, "the message is too large");
  else if (str_is(h->method, "POST") && !hold(r, CALL_HOLDS))
    refuse_busy(r);
  else if (str_is(h->method, "POST"))
    take_message(r);
  else if (str_is(h->method, "DELETE"))
    end_session(r);
  else
    reply_error(r, 405, MCP_INVALID_REQUEST, "messages from the server come in the answers to requests only");
}

/* The client has left: what runs for it is interrupted. */
static void on_gone(struct http_x *x, enum http_end how)
{
  struct request *r = http_x_data(x);
  if (r->call)
    mcp_call_leave(r->call);
  if (r->ending)
    r->ending->closing = NULL;
  quiet_end(r);
  if (r->counted)
    team_count(r->role, team_of(r), 0, -(int64_t)r->counted);
  buf_free(&r->body);
  free(r);
}

static void on_drain(struct http_x *x)
{
}

static const struct http_x_ops request_ops = {
    .body = on_body, .body_end = on_body_end, .drain = on_drain, .gone = on_gone};

static void on_request(struct http_x *x, void *arg)
{
  struct role *role = arg;
  struct request *r = xcalloc(1, sizeof(*r));
  r->role = role;
  r->x = x;
  r->body = BUF_INIT(role->config->body_max);
  http_x_handle(x, &request_ops, r);
  http_x_body_max(x, role->config->body_max);
  http_x_accepted(x);
  http_x_resume(x);
}

/* ---- links ---- */

static void channel_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct channel *c = arg;
  if (fd >= 0 && packet.n == 1 && packet.p[0] == MCP_LINK_SERVE)
    http_server_adopt(c->role->server, fd);
  else if (fd >= 0)
    close(fd);
}

static void channel_closed(struct ipc *l, void *arg)
{
  struct channel *c = arg;
  for (size_t i = 0; i < c->role->channels.n; i++)
    if (c->role->channels.p[i] == c) {
      vec_remove_swap(&c->role->channels, i);
      break;
    }
  ipc_free(l);
  free(c);
}

static const struct ipc_ops channel_ops = {channel_packet, channel_closed};

static void control_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct role *role = arg;
  if (packet.p[0] == CONTROL_LINK && fd >= 0 && role->channels.n < CHANNELS_MAX) {
    struct channel *c = xcalloc(1, sizeof(*c));
    c->role = role;
    c->ipc = ipc_new(role->loop, fd, &channel_ops, c);
    vec_push(&role->channels, c);
  } else if (fd >= 0) {
    close(fd);
  }
  control_settings(packet);
  if (packet.p[0] == CONTROL_STOP)
    uv_stop(role->loop);
}

static void control_closed(struct ipc *l, void *arg)
{
  struct role *role = arg;
  uv_stop(role->loop);
}

static const struct ipc_ops control_ops = {control_packet, control_closed};

/* libcurl and OpenSSL read their files at their first use, which is here. */
static void load_libraries(void)
{
  struct cloche *client = NULL;
  struct cloche_config config = {.size = sizeof(config), .url = API_URL, .key = "e2b_0"};
  if (!cloche_open(&config, &client, NULL))
    cloche_close(client);
}

int mcp_main(const struct mcp_role_config *config)
{
  static uv_loop_t loop;
  static struct role role; /* to the process's end: what it still holds then was not lost */
  struct err err = ERR_NONE;
  struct http_limits limits = http_limits_default;
  prctl(PR_SET_NAME, "cloche-mcp");
  clearenv(); /* a proxy or an address of the environment is not meant for this */
  load_libraries();
  uv_loop_init(&loop);
  role = (struct role){.config = config, .loop = &loop};
  role.server = http_server_new(&loop, &limits, on_request, &role);
  role.control = ipc_new(&loop, CONTROL_FD, &control_ops, &role);
  uv_timer_init(&loop, &role.sweeper);
  role.sweeper.data = &role;
  uv_timer_start(&role.sweeper, sweep, SWEEP_MS, SWEEP_MS);
  if (confine_rights(&mcp_role, config->uid, &err) || confine_filter(&mcp_role, config->uid, &err))
    return control_failed(role.control, &err);
  ipc_send(role.control, str_make((char[]){CONTROL_READY}, 1), -1);
  uv_run(&loop, UV_RUN_DEFAULT);
  return 0;
}
