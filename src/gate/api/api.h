/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - the REST API. It promises that a handler sees only requests whose route, method, key and size are right and
 * whose body is a JSON object; that everything a client wrote is checked before the warden hears of it; and that every
 * request gets exactly one answer, errors as JSON with `code` and `message`.
 *
 * Start reading at api_routes.c (the table), then api.c (from a request to its handler) and api_reply.c (answers and
 * errors); one file per resource has its handlers. Everything of a request lives in its exchange's arena. A request to
 * the warden without a reply is cancelled when the client leaves. */
#ifndef CLOCHE_API_H
#define CLOCHE_API_H

#include "gate/team_usage.h"
#include "gate/tracing.h"
#include "gate/warden_client.h"

struct team {
  char id[UUID_SIZE], name[DISPLAY_NAME_SIZE], slug[DISPLAY_NAME_SIZE];
  char key[UUID_SIZE];       /* id of the key */
  uint8_t proof[SHA256_LEN]; /* hash of it */
  unsigned timeout_max_s;    /* longest life of one run of its sandboxes */
  int64_t until_us;          /* cached until then */
};

#define API_SEGMENTS 8

struct req {
  struct gate *gate;
  struct http_x *x;
  struct arena *arena;
  const struct route_entry *entry;
  struct str id;     /* the segment at {id} */
  struct str second; /* the segment at {second} */
  struct str made;   /* id of what the request has made, for the audit log */
  struct team team;
  struct usage *usage;
  enum wire_tag proof_tag;   /* what the client has shown: W_PROOF, W_ADMIN or 0 = nothing */
  uint8_t proof[SHA256_LEN]; /* hash of it; goes along with every request to the warden */
  struct buf body;
  int64_t held;                /* bytes of it that the exchange counts as waiting */
  struct json *json;           /* NULL when there was no body */
  uint64_t pending_call;       /* request to the warden, 0 = none */
  struct list_call *list_call; /* one that waits for its turn or its reply (list_call.c); NULL = none */
  void *state;                 /* the handler's own, in the arena */
  void (*stream)(struct req *r,
                 struct str chunk); /* takes the body piece by piece, an empty one at its end (BODY_STREAM) */
  enum http_lend (*lend)(struct req *r, int fd, uint64_t most); /* with `stream`, of http_x_ops; NULL = none */
  void (*passed)(struct req *r, size_t n);
  void (*drained)(struct req *r); /* of a long answer: the client takes more of it */
  void (*drop)(struct req *r);    /* frees what the handler holds outside the arena; called when the exchange is gone */
  int64_t began_us, called_us;    /* when its head was read; when the warden was last called */
  bool answered;
  struct span_context trace; /* where `traced` */
  bool traced;
  struct wire_trace marks; /* of a create, pause or resume, as the warden told them; zeros: none */
  bool by_token;           /* the client showed an access token, not an API key */
};

typedef void (*handler_fn)(struct req *r);

enum {
  BODY_NONE = 0,
  BODY_OPTIONAL = 1,
  BODY_REQUIRED = 2,
  NO_AUTH = 4,
  ADMIN = 8,
  BODY_IGNORED = 16,
  BODY_STREAM = 64,
  ACCESS_TOKEN = 128, /* a bearer that is an access token will do */
  TEXT_CODE = 512,    /* `code` of an error is a word, not the status */
  NO_STORE = 256      /* nobody may keep an answer, and the body is wiped behind it */
};

struct route_entry {
  const char *method;
  const char *path; /* "sandboxes/{id}/timeout" */
  handler_fn handler;
  unsigned flags;
  const char *action; /* "Failed to <action>: ..." is the message of its internal errors */
};

/* api_routes.c: pure. */
struct route_path {
  struct str segments[API_SEGMENTS]; /* decoded */
  size_t n;
};
struct route_match {
  const struct route_entry *entry;
  struct str id, second;
};
int route_split(struct arena *arena, struct str path, struct route_path *out);
/* -ENOENT: no such path. -ENOTSUP: the path takes other methods. */
int route_find(struct str method, const struct route_path *path, struct route_match *out);

void api_request(struct gate *g, struct http_x *x); /* takes the exchange */
bool api_owns(struct str path);                     /* below a name that takes an API key, which no agent answers to */
/* The same on the listener for metrics: /metrics, /health, /readyz and /livez, for everyone who reaches it. */
void api_metrics_request(struct http_x *x, void *gate);
/* auth.c: fills r->team, then goes on with `then`; answers 401 itself. */
void auth_forget(struct gate *g); /* keys changed: what is remembered of them is dropped */
void auth_check(struct req *r, handler_fn then);
struct str auth_presented(struct req *r);              /* the key or token that the client has shown */
void auth_check_admin(struct req *r, handler_fn then); /* the header X-Admin-Token; no team */

/* Counts the request for the team until it is over; answers 429 itself and returns false when the team has as many as
 * it may. */
bool api_count(struct req *r, const char *team);

/* Answers (api_reply.c). Each is given once; later ones are ignored. */
struct api_failure {
  int status;
  const char *code;       /* error_code for programs; NULL = none */
  bool final;             /* Should-Retry: false - a repeat is useless, or could do the same thing twice */
  bool again;             /* Should-Retry: true - the same request will be answered soon, whatever the status is */
  uint64_t retry_after_s; /* Retry-After; 0 = none */
};
void api_fail(struct req *r, const struct api_failure *f, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void api_error(struct req *r, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void api_json(struct req *r, int status, struct str body);
void api_json_with(struct req *r, int status, struct str body, const struct http_header *headers, size_t n);
void api_empty(struct req *r, int status);
/* Only the head: the body of so many bytes follows by http_send. */
void api_answer_begin(struct req *r, int status, const char *content_type, int64_t length);
/* What the client gets for an error of the warden. changes: the request may have changed something before it failed. */
struct api_failure api_failure_of(int warden_status, uint64_t retry_after_s, bool changes);
void api_warden_error(struct req *r, const struct warden_reply *reply); /* the same, with the warden's message */
void api_warden_error_code(struct req *r, const struct warden_reply *reply, const char *code); /* with error_code */
void api_too_fast(struct req *r, struct str message, uint64_t seconds); /* 429 with Retry-After */
/* The call to the warden is over. True: it failed, and the client has the error. */
bool api_refused(struct req *r, const struct warden_reply *reply);
/* An answer that is written while items come: r->state is its writer, opened with '[' or '{'; api_items_told, given as
 * on_reply, closes and sends it. */
struct jw *api_items_begin(struct req *r, char open);
void api_items_told(const struct warden_reply *reply, void *arg);
void api_timeout_error(struct req *r); /* 400: longer than the team's sandboxes may live */

/* Calls the warden on behalf of this request, with what its client has shown; on_reply gets r as arg. */
void api_call_warden(struct req *r, struct buf *b, warden_reply_fn on_item, warden_reply_fn on_reply);
/* The same for a listing of all that a team has: few at once, fairly among teams. */
void api_call_warden_list(struct req *r, struct buf *b, warden_reply_fn on_item, warden_reply_fn on_reply);
void list_call_leave(struct req *r); /* the request is gone */
/* Adds what the client has shown; answers 413 itself and returns false when the packet is too large. */
bool api_put_proof(struct req *r, struct buf *b);

/* Query value by name, decoded into the arena; p NULL when absent. */
struct str api_query(struct req *r, const char *name);
/* Paging: `limit` (1 to most, which is also the default) and the opaque `nextToken`, decoded (empty when not given).
 * Both answer 400 themselves. */
/* The answer to a request that did something to many: {"<name>": how many, "failedCount": 0}. */
void api_counted(struct req *r, const struct warden_reply *reply, const char *name);
bool api_limit(struct req *r, uint64_t most, uint64_t *out);
bool api_token(struct req *r, struct str *plain);
/* The same under other names; a limit that is not given is `otherwise`. */
bool api_limit_named(struct req *r, const char *name, uint64_t most, uint64_t otherwise, uint64_t *out);
/* The query's milliseconds since 1970 in microseconds; *us stays as it is without it. False: answered 400. */
bool api_ms(struct req *r, const char *name, int64_t *us);
bool api_token_named(struct req *r, const char *name, struct str *plain);
void api_token_add(struct buf *out, struct str plain);
/* A sandbox id from the path: drops a legacy "-client" tail. Answers 400 and returns false when malformed. */
bool api_box_id(struct req *r, struct str *id);

/* True when the warden refused something about a sandbox; the answer is given. */
bool sandbox_refused(struct req *r, const struct warden_reply *reply);
/* The field `memory` of the body, true where it is left out; false: it is no boolean, answered with 400. */
bool sandbox_want_memory(struct req *r, bool *memory);

/* Handlers, one file per resource. */
void sandbox_create_v1(struct req *r);
void sandbox_create_v2(struct req *r);
void sandbox_get(struct req *r);
void sandbox_kill(struct req *r);
void sandbox_timeout(struct req *r);
void sandbox_refresh(struct req *r);
void sandbox_connect_v1(struct req *r);
void sandbox_connect_v2(struct req *r);
void sandbox_pause(struct req *r);
void sandbox_resume(struct req *r);
void sandbox_network(struct req *r);
/* W_EGRESS of settings that were read; false: refused, the answer is sent. */
struct network;
bool sandbox_put_egress(struct req *r, const struct network *n, struct buf *packet);
/* Pure: the policy as it is packed; nothing when the settings need none. */
int sandbox_egress_pack(struct arena *a, const struct network *n, struct buf *out, struct err *err);
void sandbox_logs_v1(struct req *r);
void sandbox_logs_v2(struct req *r);
void sandbox_network_log(struct req *r);
void sandbox_metrics(struct req *r);
void sandbox_metrics_many(struct req *r);
void sandbox_list_v1(struct req *r);
void sandbox_list_v2(struct req *r);
void template_list(struct req *r);
void template_list_v2(struct req *r);
void template_list_default(struct req *r);
void template_alias(struct req *r);
void template_get(struct req *r);
void template_tags(struct req *r);
void template_tag(struct req *r);
void tag_count(struct req *r);
void tag_exists(struct req *r);
void tag_groups(struct req *r);
void tag_assignments(struct req *r);
void template_untag(struct req *r);
void template_update(struct req *r);
void template_update_v2(struct req *r);
void template_delete(struct req *r);
void build_request(struct req *r);
void build_request_v2(struct req *r);
void build_start(struct req *r);
void build_request_dockerfile(struct req *r);
void build_again_dockerfile(struct req *r);
void build_start_requested(struct req *r);
/* A request about the build that the path names; answers 400 itself and returns false when it names none. */
bool build_call_about(struct req *r, struct buf *b, enum wire_type type);
void build_status(struct req *r);
void build_logs(struct req *r);
void build_cancel(struct req *r);
void upload_link(struct req *r);
void upload_put(struct req *r);
void mcp_request(struct req *r);
void volume_create(struct req *r);
void volume_list(struct req *r);
void volume_get(struct req *r);
void volume_delete(struct req *r);
void content_stat(struct req *r);
void content_change(struct req *r);
void content_remove(struct req *r);
void content_list(struct req *r);
void content_mkdir(struct req *r);
void content_read(struct req *r);
void content_write(struct req *r);
void access_token_create(struct req *r);
void access_token_delete(struct req *r);
void snapshot_create(struct req *r);
void snapshot_list(struct req *r);
void sandbox_fork(struct req *r);
void event_list(struct req *r);
void event_list_sandbox(struct req *r);
void team_list(struct req *r);
void team_metrics(struct req *r);
void team_metrics_max(struct req *r);
void console_session(struct req *r);
void console_link(struct req *r);
void key_list(struct req *r);
void key_create(struct req *r);
void key_rename(struct req *r);
void key_delete(struct req *r);
void identity_keys(struct req *r);
void identity_keys_forget(void); /* they changed */
void team_secret_create(struct req *r);
void team_secret_list(struct req *r);
void team_secret_get(struct req *r);
void team_secret_update(struct req *r);
void team_secret_delete(struct req *r);
void webhook_create(struct req *r);
void webhook_list(struct req *r);
void webhook_get(struct req *r);
void webhook_update(struct req *r);
void webhook_delete(struct req *r);
void webhook_deliveries(struct req *r);
void webhook_stats(struct req *r);
/* webhooks.c, for both files: a request about the webhook that the path names, which answers 404 itself and returns
 * false when it names none; types of events. */
bool webhook_begin(struct req *r, struct buf *b, enum wire_type type);
void webhook_type_error(struct req *r, const char *where, struct str type);
void metrics(struct req *r);
void health(struct req *r);
void alive(struct req *r);
void metrics_api(struct req *r, int status);           /* counts an answer */
void api_take_marks(struct req *r, struct str packet); /* of the warden's reply, for the request's span */
void node_list(struct req *r);
void node_get(struct req *r);
void node_change(struct req *r);
void admin_kill(struct req *r);
void admin_counts(struct req *r);
void admin_doctor(struct req *r);
void admin_team_list(struct req *r);
void admin_team_create(struct req *r);
void admin_team_get(struct req *r);
void admin_team_change(struct req *r);
void build_compare(struct req *r);
void admin_key_create(struct req *r);
void admin_key_delete(struct req *r);

/* A box as the warden told it. Slices live as long as the packet. */
struct box_view {
  struct str id, team, template_id, alias, config;
  struct str rules;          /* header rules, JSON; none for most */
  struct str mounts;         /* lines of mount_list.h */
  struct str token, traffic; /* where the box has them and the caller may see them */
  int64_t started_us, end_us;
  unsigned state, cpus, memory_mb, disk_mb, flags, tier;
  uint64_t run;
};
void box_view(struct str packet, struct box_view *v);
/* What leads a client back here as {port}-{id}.DOMAIN: the configured one, or localhost with the port that the client
 * has asked by, where `host` (of its request) says that it did; empty: nothing that we know of. */
struct str box_domain(struct str configured, struct str host, struct arena *a);
void box_put_sandbox(struct req *r, struct jw *w, const struct box_view *v); /* create, connect */
void box_put_listed(struct jw *w, const struct box_view *v, const struct json *config, bool detail, struct req *r);

#endif
