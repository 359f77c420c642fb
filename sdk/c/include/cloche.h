/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcloche - sandboxes of a Cloche (or E2B-compatible) server from C.
 *
 * A struct cloche is a client: an address, a key and a pool of kept connections. Everything else is made from one.
 * Every operation is one function with two faces. Without an op in its struct cloche_call it blocks until the result is
 * there. With one it starts, returns at once and is finished by cloche_drive(); the place for the result must live
 * until then. Options are structs with a size field, best written with CLOCHE_WITH(); NULL means all defaults. Results
 * belong to the caller and are freed, whatever they are, by one cloche_free(). Nothing in this library aborts or exits:
 * where memory is short a call returns CLOCHE_ENOMEM.
 *
 * A client and what was made from it may be used by several threads; calls take turns by a lock of the client.
 * Different clients share nothing. Callbacks run in the thread that drives the client, with the lock held; they may
 * start and even block in other calls of the same client.
 */
#ifndef CLOCHE_H
#define CLOCHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CLOCHE_API             __attribute__((visibility("default")))
#define CLOCHE_VERSION_MAJOR   0
#define CLOCHE_VERSION_MINOR   1
#define CLOCHE_VERSION_PATCH   0

/* &(struct cloche_run){.size = ..., .language = "r"}: options with their size filled in, for one call. */
#define CLOCHE_WITH(type, ...) (&(struct type){.size = sizeof(struct type), __VA_ARGS__})

struct cloche;         /* a client */
struct cloche_box;     /* a sandbox that this client talks to */
struct cloche_process; /* a command or terminal whose output is being read */
struct cloche_recipe;  /* steps of a template */
struct cloche_op;      /* one operation under way */
struct cloche_cancel;  /* a way to end calls from another thread or a signal handler */
struct cloche_text;    /* bytes with their length, below */

/* ---- errors: Errors as values ---- */

enum cloche_code {
  CLOCHE_OK = 0,
  CLOCHE_ENOMEM,    /* no memory; nothing else is wrong */
  CLOCHE_EINVAL,    /* an argument, or the server calls one wrong (400) */
  CLOCHE_ENET,      /* no connection, or it was lost while the sandbox goes on */
  CLOCHE_ETIMEOUT,  /* the call's deadline */
  CLOCHE_ECANCELED, /* cloche_cancel_fire(), cloche_op_cancel(), or a callback said so */
  CLOCHE_EAUTH,     /* the key or token is wrong (401) */
  CLOCHE_EDENIED,   /* not allowed with this key (403) */
  CLOCHE_ENOTFOUND, /* no such sandbox, file, process, context, template ... (404) */
  CLOCHE_EEXISTS,   /* there already (409) */
  CLOCHE_EGONE,     /* the sandbox has ended or is paused; cause says why */
  CLOCHE_EPORT,     /* the sandbox runs, nothing listens on that port */
  CLOCHE_ELIMIT,    /* a limit of the team or the rate limit (429) */
  CLOCHE_EBUSY,     /* the server is busy, nothing was changed (503) */
  CLOCHE_ESPACE,    /* no space left in the sandbox (507) */
  CLOCHE_EPROTO,    /* an answer that makes no sense */
  CLOCHE_ESERVER,   /* any other failure that the server tells */
  CLOCHE_ESYSTEM,   /* a local file, descriptor or system call */
  CLOCHE_EBUILD,    /* a template's build failed; message has the step and why */
  CLOCHE_ECOMMAND   /* a helper's command (git) exited with a status other than 0; message has its stderr */
};

/* What went wrong. Zeroed by the caller at first, filled by calls that fail, emptied by cloche_error_clear(). */
struct cloche_error {
  enum cloche_code code;
  int http_status; /* 0 where no answer came */
  char *message;   /* one sentence; NULL when even that had no memory */
  char *cause;     /* CLOCHE_EGONE: why the sandbox ended, as the server tells it ("timeout: ..."); else NULL */
};

/** Frees the texts of an error and zeroes it. */
CLOCHE_API void cloche_error_clear(struct cloche_error *error);
/** The name of a code, "CLOCHE_EGONE". */
CLOCHE_API const char *cloche_code_name(enum cloche_code code);
/** The library's version, "0.1.0". */
CLOCHE_API const char *cloche_version(void);
/** Frees a result of any call: every pointer that a call gave through its out argument, except handles. */
CLOCHE_API void cloche_free(void *result);

/* ---- client: Clients, deadlines, cancelling, event loops ---- */

struct cloche_pair {
  const char *name, *value;
};

/* Where the server is. What is NULL comes from the environment: CLOCHE_URL (all three addresses) and CLOCHE_KEY, then
 * E2B_API_URL, E2B_SANDBOX_URL, E2B_VOLUME_API_URL, E2B_DOMAIN and E2B_API_KEY as stock clients read them. */
struct cloche_config {
  size_t size;
  const char *key;         /* API key */
  const char *url;         /* one address for everything, "http://127.0.0.1:3000" */
  const char *api_url;     /* the API; default https://api.DOMAIN */
  const char *sandbox_url; /* sandboxes, routed by headers; default https://PORT-ID.DOMAIN */
  const char *volume_url;  /* content of volumes; default: the API's address */
  const char *domain;
  const char *ca_file;    /* PEM file of certificates to trust; default: SSL_CERT_FILE, then the system's */
  const char *user_agent; /* put before "libcloche/VERSION" */
  const char *proxy;      /* as CURLOPT_PROXY; default: the usual environment variables */
  long timeout_ms;        /* of control calls, default 60000 */
  int retries;            /* of control calls after 429 and 503, default 3; < 0: none */
  size_t max_answer;      /* bytes of an answer that is kept in memory, default 1 GiB */
  /* Instead of connecting: a connected stream socket, owned by the library from then on, or -1. For programs that may
   * not connect themselves. Called with the client's lock held. libcurl 7.88 calls connect() on it all the same, and
   * goes on only where that fails with EINPROGRESS; later versions do not. */
  int (*open_socket)(void *arg);
  void *open_socket_arg;
};

/**
 * Makes a client. No request is sent. libcurl is initialised on first use, once, in a thread-safe way.
 * Errors: CLOCHE_EINVAL when there is no key or an address is no http(s) URL.
 */
CLOCHE_API enum cloche_code cloche_open(const struct cloche_config *config, struct cloche **client,
                                        struct cloche_error *error);
/** Ends everything under way with CLOCHE_ECANCELED and frees the client; its boxes and processes must be freed before.
 */
CLOCHE_API void cloche_close(struct cloche *client);

/* What every call takes beside its own arguments; NULL = all defaults. */
struct cloche_call {
  size_t size;
  long timeout_ms;              /* 0: the default of the call's kind (docs/sdk-c.md has the table); < 0: none */
  struct cloche_cancel *cancel; /* firing it ends the call */
  struct cloche_op *op;         /* start only; the operation goes on in cloche_drive() */
};

/** Makes a cancel handle for calls of a client. NULL: no memory. */
CLOCHE_API struct cloche_cancel *cloche_cancel_new(struct cloche *client);
/** Ends the calls that were given the handle. May be called from any thread and from signal handlers. Stays fired. */
CLOCHE_API void cloche_cancel_fire(struct cloche_cancel *cancel);
/** Makes the handle usable again. */
CLOCHE_API void cloche_cancel_reset(struct cloche_cancel *cancel);
/** Frees the handle; no call may be under way with it. */
CLOCHE_API void cloche_cancel_free(struct cloche_cancel *cancel);

/* Told once when an operation has ended; `error` is NULL on success and valid during the call. The op may be freed. */
typedef void cloche_done_fn(struct cloche_op *op, const struct cloche_error *error, void *user);

/** Makes an op for one asynchronous call. `done` may be NULL. NULL: no memory. */
CLOCHE_API struct cloche_op *cloche_op_new(struct cloche *client, cloche_done_fn *done, void *user);
/** Whether the operation has ended (or never began). */
CLOCHE_API bool cloche_op_done(const struct cloche_op *op);
/** The error of an operation that has ended; its code is CLOCHE_OK on success. Borrowed from the op. */
CLOCHE_API const struct cloche_error *cloche_op_error(const struct cloche_op *op);
/** Drives the client until the operation has ended. */
CLOCHE_API enum cloche_code cloche_op_wait(struct cloche_op *op, struct cloche_error *error);
/** Ends the operation with CLOCHE_ECANCELED before it returns; not for use in signal handlers. */
CLOCHE_API void cloche_op_cancel(struct cloche_op *op);
/** Frees an op, cancelling its operation without a call of `done`. An op that has ended may be used once more instead.
 */
CLOCHE_API void cloche_op_free(struct cloche_op *op);

/** A descriptor (epoll) that is readable when cloche_drive() has work. Belongs to the client. */
CLOCHE_API int cloche_fd(const struct cloche *client);
/** Milliseconds until cloche_drive() must be called even if the descriptor is silent; -1: no such time. */
CLOCHE_API int cloche_timeout(struct cloche *client);
/** Does what can be done without waiting. Returns CLOCHE_OK, or CLOCHE_ESYSTEM when the client is beyond use. */
CLOCHE_API enum cloche_code cloche_drive(struct cloche *client);

struct cloche_request {
  size_t size;
  const char *body;                  /* JSON, or NULL */
  const struct cloche_pair *headers; /* more of them, "X-Admin-Token" for example */
  size_t header_count;
};

/**
 * Any request of the API, for what has no function of its own: `path` begins with '/' and is sent as it is, escaped by
 * the caller where needed. Gives the answer's body, which may be empty. Errors are told as by other calls.
 */
CLOCHE_API enum cloche_code cloche_request(struct cloche *client, const char *method, const char *path,
                                           const struct cloche_request *options, struct cloche_text **answer,
                                           const struct cloche_call *call, struct cloche_error *error);

/* ---- sandboxes: Creating, finding and ending sandboxes ---- */

struct cloche_volume_mount {
  const char *name, *path;
};

struct cloche_network {
  size_t size;
  const char *const *allow_out;   /* addresses, ranges, names; ends with NULL */
  const char *const *deny_out;    /* addresses, ranges; ends with NULL */
  const char *const *dns_servers; /* ends with NULL; an array of one NULL means none */
  const char *mask_request_host;
  const char *rules_json; /* header rules, docs/egress.md */
  const char *egress_proxy_json;
  const int *https_ports; /* ends with 0 */
  bool no_public_traffic; /* ports need the traffic token, which this library sends */
  bool no_internet;
};

struct cloche_create {
  size_t size;
  const char *template_id; /* name[:tag] or id; default code-interpreter-v1 */
  int timeout_s;           /* life; default 300 */
  const struct cloche_pair *metadata;
  size_t metadata_count;
  const struct cloche_pair *envs;
  size_t env_count;
  const struct cloche_volume_mount *mounts;
  size_t mount_count;
  const struct cloche_network *network;
  bool pause_on_timeout;       /* instead of ending */
  bool pause_without_memory;   /* then only files are kept */
  bool resume_on_traffic;      /* a paused sandbox wakes when something is sent to it */
  const char *idempotency_key; /* default: one of its own for each call, so that repeats never make two */
  const char *iam_json, *mcp_json;
};

/** Creates a sandbox and gives a handle to it; free with cloche_box_free(). It is ready when the call returns. */
CLOCHE_API enum cloche_code cloche_create(struct cloche *client, const struct cloche_create *options,
                                          struct cloche_box **box, const struct cloche_call *call,
                                          struct cloche_error *error);

struct cloche_connect {
  size_t size;
  int timeout_s; /* life from now on; never shortens; default 300 */
  bool reboot;   /* a paused sandbox starts from its files, without its memory */
};

/** Connects to a sandbox by its ID; one that is paused is resumed. */
CLOCHE_API enum cloche_code cloche_connect(struct cloche *client, const char *id, const struct cloche_connect *options,
                                           struct cloche_box **box, const struct cloche_call *call,
                                           struct cloche_error *error);
/** Resumes a paused sandbox; CLOCHE_EEXISTS when it runs. */
CLOCHE_API enum cloche_code cloche_resume(struct cloche *client, const char *id, const struct cloche_connect *options,
                                          struct cloche_box **box, const struct cloche_call *call,
                                          struct cloche_error *error);
/** Makes a handle from what another program knows, without a request. `token` may be NULL. */
CLOCHE_API enum cloche_code cloche_attach(struct cloche *client, const char *id, const char *token, const char *domain,
                                          struct cloche_box **box, struct cloche_error *error);
/** Frees the handle; the sandbox goes on. NULL is allowed. */
CLOCHE_API void cloche_box_free(struct cloche_box *box);
/** Its ID. Borrowed, as all texts of handles. */
CLOCHE_API const char *cloche_box_id(const struct cloche_box *box);
/** The ID of its template; "" where that is not known. */
CLOCHE_API const char *cloche_box_template(const struct cloche_box *box);
/** Its access token; NULL where it needs none. */
CLOCHE_API const char *cloche_box_token(const struct cloche_box *box);
/** The token that its public ports want; NULL where they want none. */
CLOCHE_API const char *cloche_box_traffic_token(const struct cloche_box *box);
/** The domain of its host names; NULL where there is none. */
CLOCHE_API const char *cloche_box_domain(const struct cloche_box *box);
/** The host name of one of its ports, "3000-ID.DOMAIN", without a scheme. */
CLOCHE_API enum cloche_code cloche_host(const struct cloche_box *box, int port, char **host,
                                        struct cloche_error *error);

struct cloche_box_info {
  const char *id, *template_id, *alias, *state, *started_at, *end_at, *envd_version, *domain, *token;
  int64_t cpu_count, memory_mb, disk_mb;
  const struct cloche_pair *metadata;
  size_t metadata_count;
  const struct cloche_volume_mount *mounts;
  size_t mount_count;
  const char *on_timeout; /* "kill" or "pause"; NULL in lists */
  bool auto_resume;
  const char *pause_mode;   /* "full", "filesystem" or NULL */
  const char *network_json; /* NULL when never set */
  const char *raw;          /* the server's JSON */
};
struct cloche_box_list {
  const struct cloche_box_info *items;
  size_t count;
  const char *next;      /* token of the next page; NULL: this was the last */
  int64_t total_running; /* -1: not told */
};
struct cloche_list {
  size_t size;
  const struct cloche_pair *metadata; /* all must match */
  size_t metadata_count;
  const char *state; /* "running", "paused" or "running,paused" (default) */
  const char *template_id;
  const char *started_after; /* RFC 3339 */
  bool ascending;
  int limit;        /* of a page, 1-100 */
  const char *next; /* of the page before */
};

/** One page of the team's sandboxes. */
CLOCHE_API enum cloche_code cloche_list(struct cloche *client, const struct cloche_list *options,
                                        struct cloche_box_list **list, const struct cloche_call *call,
                                        struct cloche_error *error);
/** What the server knows of one sandbox. */
CLOCHE_API enum cloche_code cloche_info(struct cloche *client, const char *id, struct cloche_box_info **info,
                                        const struct cloche_call *call, struct cloche_error *error);
/** Ends a sandbox. `existed` (may be NULL): false when there was none. */
CLOCHE_API enum cloche_code cloche_kill(struct cloche *client, const char *id, bool *existed,
                                        const struct cloche_call *call, struct cloche_error *error);
/** Sets its end to this many seconds from now. */
CLOCHE_API enum cloche_code cloche_set_timeout(struct cloche *client, const char *id, int seconds,
                                               const struct cloche_call *call, struct cloche_error *error);

struct cloche_pause {
  size_t size;
  bool without_memory; /* only files */
  bool strict;         /* fail with CLOCHE_EBUSY when the agent does not answer */
};

/** Pauses. `paused` (may be NULL): false when it was paused before. */
CLOCHE_API enum cloche_code cloche_pause(struct cloche *client, const char *id, const struct cloche_pause *options,
                                         bool *paused, const struct cloche_call *call, struct cloche_error *error);
/** Replaces the rules for what may leave the sandbox. */
CLOCHE_API enum cloche_code cloche_set_network(struct cloche *client, const char *id,
                                               const struct cloche_network *network, const struct cloche_call *call,
                                               struct cloche_error *error);
/** Whether the sandbox answers. */
CLOCHE_API enum cloche_code cloche_is_running(struct cloche_box *box, bool *running, const struct cloche_call *call,
                                              struct cloche_error *error);

struct cloche_fork {
  struct cloche_box *box; /* NULL: this one failed; a handle of the caller's, to be freed by cloche_box_free() */
  int error_code;         /* HTTP status */
  const char *error;
};
struct cloche_fork_list {
  const struct cloche_fork *items;
  size_t count;
};

/** Makes `count` copies of a running sandbox with memory and files; `timeout_s` 0: the server's default (15). */
CLOCHE_API enum cloche_code cloche_fork(struct cloche *client, const char *id, int count, int timeout_s,
                                        struct cloche_fork_list **forks, const struct cloche_call *call,
                                        struct cloche_error *error);

struct cloche_snapshot {
  const char *id;           /* usable as a template */
  const char *const *names; /* ends with NULL */
};
struct cloche_snapshot_list {
  const struct cloche_snapshot *items;
  size_t count;
  const char *next;
};
struct cloche_snapshot_options {
  size_t size;
  const char *name;
  bool without_memory;
};

/** Keeps a running sandbox's state under an ID (and name) that cloche_create() takes as a template. */
CLOCHE_API enum cloche_code cloche_snapshot(struct cloche *client, const char *id,
                                            const struct cloche_snapshot_options *options,
                                            struct cloche_snapshot **snapshot, const struct cloche_call *call,
                                            struct cloche_error *error);
/** One page of snapshots; `sandbox`, `next` may be NULL, `limit` 0. */
CLOCHE_API enum cloche_code cloche_snapshots(struct cloche *client, const char *sandbox, int limit, const char *next,
                                             struct cloche_snapshot_list **list, const struct cloche_call *call,
                                             struct cloche_error *error);
/** Deletes a snapshot. `existed` may be NULL. */
CLOCHE_API enum cloche_code cloche_snapshot_delete(struct cloche *client, const char *id, bool *existed,
                                                   const struct cloche_call *call, struct cloche_error *error);

/* ---- observing: Metrics, logs, events, the network log ---- */

struct cloche_metric {
  const char *timestamp;
  int64_t timestamp_unix, cpu_count;
  double cpu_used_pct;
  int64_t mem_used, mem_total, mem_cache, disk_used, disk_total;
};
struct cloche_metric_list {
  const struct cloche_metric *items;
  size_t count;
};
struct cloche_log_entry {
  const char *timestamp, *level, *message;
  const struct cloche_pair *fields;
  size_t field_count;
};
struct cloche_log_list {
  const struct cloche_log_entry *items;
  size_t count;
};
struct cloche_log_options {
  size_t size;
  int64_t cursor_ms; /* since 1970; 0: from the newest backwards */
  bool forward;
  int limit;         /* 1-1000 */
  const char *level; /* at least: debug, info, warn, error */
  const char *search;
};
struct cloche_event {
  const char *id, *type, *timestamp, *label, *box_id, *execution_id, *template_id, *build_id;
  const char *data; /* JSON or NULL */
  const char *raw;
};
struct cloche_event_list {
  const struct cloche_event *items;
  size_t count;
};
struct cloche_event_options {
  size_t size;
  int offset, limit;
  bool ascending;
  const char *const *types; /* ends with NULL */
};
struct cloche_net_entry {
  const char *timestamp, *type, *verdict, *protocol, *name, *address, *reason, *method, *path;
  int64_t port, status, bytes_in, bytes_out; /* 0 where not told */
  const char *raw;
};
struct cloche_net_log {
  const struct cloche_net_entry *items;
  size_t count;
};

/** Samples of use between two times in seconds since 1970; 0: all. */
CLOCHE_API enum cloche_code cloche_metrics(struct cloche *client, const char *id, int64_t start, int64_t end,
                                           struct cloche_metric_list **list, const struct cloche_call *call,
                                           struct cloche_error *error);
/** Lines of the sandbox's log. */
CLOCHE_API enum cloche_code cloche_logs(struct cloche *client, const char *id, const struct cloche_log_options *options,
                                        struct cloche_log_list **list, const struct cloche_call *call,
                                        struct cloche_error *error);
/** What happened to a sandbox, or (id NULL) to all of the team. */
CLOCHE_API enum cloche_code cloche_events(struct cloche *client, const char *id,
                                          const struct cloche_event_options *options, struct cloche_event_list **list,
                                          const struct cloche_call *call, struct cloche_error *error);
/** Names looked up and connections made between two times in milliseconds since 1970; 0: all. `limit` 0: default. */
CLOCHE_API enum cloche_code cloche_network_log(struct cloche *client, const char *id, int64_t start_ms, int64_t end_ms,
                                               int limit, struct cloche_net_log **log, const struct cloche_call *call,
                                               struct cloche_error *error);

/* ---- code: Running code ---- */

struct cloche_text {
  const char *data; /* followed by a NUL that `len` doesn't count */
  size_t len;
  const char *timestamp; /* of output of cells; else NULL */
};

enum cloche_chart_type {
  CLOCHE_CHART_UNKNOWN, /* "unknown", or a type that this library doesn't know: see type_name and raw */
  CLOCHE_CHART_LINE,
  CLOCHE_CHART_SCATTER,
  CLOCHE_CHART_BAR,
  CLOCHE_CHART_PIE,
  CLOCHE_CHART_BOX_AND_WHISKER,
  CLOCHE_CHART_SUPERCHART
};

/* A number or a text, as the server wrote it. */
struct cloche_value {
  const char *text; /* the text, or the number's own digits ("100.0"); NULL: null */
  double number;    /* 0 for texts */
  bool is_number;
};
struct cloche_point {
  struct cloche_value x, y;
};
struct cloche_chart_element {
  const char *label;
  const struct cloche_point *points; /* line, scatter */
  size_t point_count;
  const char *group; /* bar */
  struct cloche_value value;
  struct cloche_value angle, radius;                                    /* pie */
  struct cloche_value min, first_quartile, median, third_quartile, max; /* box and whisker */
  const struct cloche_value *outliers;
  size_t outlier_count;
};
struct cloche_axis {
  const char *label, *unit, *scale; /* NULL where null or absent */
  const struct cloche_value *ticks;
  size_t tick_count;
  const char *const *tick_labels;
  size_t tick_label_count;
};
/* What a chart is beyond the types above, docs/charts.md. */
enum cloche_detail_type {
  CLOCHE_DETAIL_UNKNOWN, /* a type that this library doesn't know, or a chart's own type: then only `sampled` counts */
  CLOCHE_DETAIL_HISTOGRAM,
  CLOCHE_DETAIL_AREA,
  CLOCHE_DETAIL_HEATMAP,
  CLOCHE_DETAIL_ERROR_BAR,
  CLOCHE_DETAIL_CONTOUR,
  CLOCHE_DETAIL_POLAR,
  CLOCHE_DETAIL_SCATTER_3D,
  CLOCHE_DETAIL_LINE_3D,
  CLOCHE_DETAIL_PLOTLY,
  CLOCHE_DETAIL_ALTAIR
};

/* Lists of values, of lists, of lists of lists; `items` is NULL where the server told none. */
struct cloche_values {
  const struct cloche_value *items;
  size_t count;
};
struct cloche_rows {
  const struct cloche_values *items;
  size_t count;
};
struct cloche_paths {
  const struct cloche_rows *items;
  size_t count;
};
/* Data that plotly and altair have by name; `rows` instead of `values` where it has two dimensions. */
struct cloche_column {
  const char *name;
  struct cloche_values values;
  struct cloche_rows rows;
};
/* A channel of altair: what x, color, ... stand for. */
struct cloche_channel {
  const char *name, *field, *type, *title, *aggregate; /* NULL where null */
  bool bin;
};
struct cloche_detail_element {
  const char *label;
  struct cloche_rows bins;                   /* histogram: lower edge, upper edge, value */
  struct cloche_rows points;                 /* area: position, lower, upper end; polar: angle, radius; 3-D: x, y, z */
  struct cloche_rows x_errors, y_errors;     /* error bars, of each point: how far down and up */
  struct cloche_value level, upper;          /* contour; `upper` where it is filled */
  struct cloche_paths paths;                 /* contour: x, y along each */
  struct cloche_values widths, bases;        /* bars of polar axes */
  int64_t row_total, column_total, channels; /* heatmap: its size, also where not all values were kept */
  struct cloche_values x, y;                 /* heatmap: where columns and rows are */
  struct cloche_rows values;                 /* heatmap: rows of it; none of a picture in colours */
  struct cloche_value value_min, value_max;
  const char *colormap;
  const char *trace, *mode, *orientation; /* plotly */
  const char *mark;                       /* altair */
  const struct cloche_channel *encoding;
  size_t encoding_count;
  const struct cloche_column *columns; /* plotly, altair */
  size_t column_count;
};
/* Where a chart had more values than it may have: how many there were, how many were kept, every which. */
struct cloche_sampled {
  int64_t element;
  const char *what; /* points, rows, columns, lines */
  int64_t of, kept, step;
};
struct cloche_chart_detail {
  enum cloche_detail_type type;
  const char *type_name;
  struct cloche_axis x, y, z; /* z: 3-D */
  const char *orientation;    /* histogram, area: "vertical" or "horizontal" */
  bool stacked, filled;       /* area; contour */
  const char *of;             /* polar: line, scatter, bar or area */
  double theta_offset, theta_direction;
  struct cloche_values levels; /* contour */
  const struct cloche_detail_element *elements;
  size_t element_count;
  const struct cloche_detail_element *lines; /* drawn beside areas and points: label and points */
  size_t line_count;
  const struct cloche_sampled *sampled;
  size_t sampled_count;
};
struct cloche_chart {
  enum cloche_chart_type type;
  const char *type_name, *title; /* title may be NULL */
  struct cloche_axis x, y;
  const struct cloche_chart_element *elements;
  size_t element_count;
  const struct cloche_chart *charts; /* of a superchart */
  size_t chart_count;
  const struct cloche_chart_detail *detail; /* NULL: the chart says all */
  const char *kind;                         /* the detail's type_name, or the chart's */
  const char *raw;                          /* the JSON text */
};

/* One result in all forms that it came in; NULL where it has no such form. png, jpeg, pdf are base64. */
struct cloche_result {
  const char *text, *html, *markdown, *svg, *png, *jpeg, *pdf, *latex, *javascript;
  const char *json, *data, *chart_json, *extra; /* JSON texts, numbers as they came */
  const struct cloche_chart *chart;             /* NULL: none, or an empty one */
  bool is_main;                                 /* the value of the cell's last expression */
  const char *raw;                              /* the whole event as JSON */
};
struct cloche_code_error {
  const char *name, *value, *traceback;
};
struct cloche_execution {
  const struct cloche_result *results;
  size_t result_count;
  const struct cloche_text *out, *err; /* chunks of stdout and stderr in the order they came */
  size_t out_count, err_count;
  const struct cloche_code_error *error; /* NULL: the code raised nothing */
  int64_t execution_count;
  const char *execution_id; /* NULL: the server tells none */
  const char *text;         /* of the main result; NULL: none */
};

/* Callbacks of streams: the pointers are valid during the call only; a result other than 0 ends the operation with
 * CLOCHE_ECANCELED. */
typedef int cloche_text_fn(const struct cloche_text *text, void *user);
typedef int cloche_result_fn(const struct cloche_result *result, void *user);
typedef int cloche_code_error_fn(const struct cloche_code_error *error, void *user);
typedef int cloche_started_fn(const char *execution_id, void *user);

struct cloche_run {
  size_t size;
  const char *language; /* default python; not together with context */
  const char *context_id;
  const struct cloche_pair *envs;
  size_t env_count;
  cloche_started_fn *on_start;
  cloche_text_fn *on_stdout, *on_stderr;
  cloche_result_fn *on_result;
  cloche_code_error_fn *on_error;
  void *user;
  bool no_retain; /* the execution keeps neither output nor results: callbacks are enough */
};

/**
 * Runs code and gives all that came of it. An exception in the code is no error of the call: see execution->error.
 * The deadline (default 300 s) is of the whole run; at its end the server interrupts the code.
 */
CLOCHE_API enum cloche_code cloche_run_code(struct cloche_box *box, const char *code, const struct cloche_run *options,
                                            struct cloche_execution **execution, const struct cloche_call *call,
                                            struct cloche_error *error);
/** The bytes of base64 text (a result's png, jpeg, pdf); cloche_free() frees them. */
CLOCHE_API enum cloche_code cloche_decode(const char *base64, struct cloche_text **bytes, struct cloche_error *error);

struct cloche_context {
  const char *id, *language, *cwd;
};
struct cloche_context_list {
  const struct cloche_context *items;
  size_t count;
};

/** Makes a context: an interpreter with a state of its own. `language`, `cwd` may be NULL. */
CLOCHE_API enum cloche_code cloche_context_create(struct cloche_box *box, const char *language, const char *cwd,
                                                  struct cloche_context **context, const struct cloche_call *call,
                                                  struct cloche_error *error);
/** All contexts, oldest first. */
CLOCHE_API enum cloche_code cloche_contexts(struct cloche_box *box, struct cloche_context_list **list,
                                            const struct cloche_call *call, struct cloche_error *error);
/** Restarts a context: its state is lost, its ID stays. */
CLOCHE_API enum cloche_code cloche_context_restart(struct cloche_box *box, const char *id,
                                                   const struct cloche_call *call, struct cloche_error *error);
/** Removes a context. */
CLOCHE_API enum cloche_code cloche_context_remove(struct cloche_box *box, const char *id,
                                                  const struct cloche_call *call, struct cloche_error *error);

struct cloche_interrupt {
  size_t size;
  const char *context_id, *language, *execution_id; /* all NULL: the default context */
};

/** Interrupts what runs in a context. `interrupted` (may be NULL): false when nothing ran. */
CLOCHE_API enum cloche_code cloche_interrupt(struct cloche_box *box, const struct cloche_interrupt *options,
                                             bool *interrupted, const struct cloche_call *call,
                                             struct cloche_error *error);

/* ---- commands: Commands and terminals ---- */

typedef int cloche_pid_fn(uint32_t pid, void *user);

struct cloche_command {
  size_t size;
  const char *user_name; /* default: the template's user */
  const char *cwd;
  const struct cloche_pair *envs; /* never shown in the process list */
  size_t env_count;
  const char *const *argv; /* run this program as it is instead of a shell line; ends with NULL */
  const char *tag;
  bool stdin_open; /* keep stdin open for cloche_stdin() */
  cloche_pid_fn *on_start;
  cloche_text_fn *on_stdout, *on_stderr; /* of a terminal all output comes as stdout */
  void *user;
  bool no_retain; /* the result keeps no output */
  int cols, rows; /* both set: in a terminal of that size */
};
struct cloche_command_result {
  int exit_code; /* -1: ended by a signal, see status */
  struct cloche_text out, err;
  const char *status; /* "exit status 1", "signal: killed" */
  const char *error;  /* NULL when the exit code is 0 */
  uint32_t pid;
};

/**
 * Runs a line of bash (`/bin/bash -l -c line`) and waits for its end. A status other than 0 is no error of the call.
 * The deadline (default 60 s) is of the whole run; at its end the process is killed.
 */
CLOCHE_API enum cloche_code cloche_command(struct cloche_box *box, const char *line,
                                           const struct cloche_command *options, struct cloche_command_result **result,
                                           const struct cloche_call *call, struct cloche_error *error);
/** Starts a command (or, with cols and rows, a terminal; `line` NULL: an interactive shell). Output arrives in
 * callbacks whenever the client is driven: in cloche_wait(), in any other blocking call, in cloche_drive(). */
CLOCHE_API enum cloche_code cloche_start(struct cloche_box *box, const char *line, const struct cloche_command *options,
                                         struct cloche_process **process, const struct cloche_call *call,
                                         struct cloche_error *error);
/** Reads a running process from now on, by its pid. Of `options` only callbacks and no_retain count. */
CLOCHE_API enum cloche_code cloche_reconnect(struct cloche_box *box, uint32_t pid, const struct cloche_command *options,
                                             struct cloche_process **process, const struct cloche_call *call,
                                             struct cloche_error *error);
/** The pid inside the sandbox. */
CLOCHE_API uint32_t cloche_process_pid(const struct cloche_process *process);
/** Waits for the end of a process; no deadline unless given, and at one the process goes on. May be asked again. */
CLOCHE_API enum cloche_code cloche_wait(struct cloche_process *process, struct cloche_command_result **result,
                                        const struct cloche_call *call, struct cloche_error *error);
/** Stops reading and frees the handle; the process goes on. NULL is allowed. */
CLOCHE_API void cloche_process_free(struct cloche_process *process);
/** Writes to the stdin of a process that was started with stdin_open. */
CLOCHE_API enum cloche_code cloche_stdin(struct cloche_box *box, uint32_t pid, const void *data, size_t len,
                                         const struct cloche_call *call, struct cloche_error *error);
/** Writes to the terminal of a process. */
CLOCHE_API enum cloche_code cloche_pty_input(struct cloche_box *box, uint32_t pid, const void *data, size_t len,
                                             const struct cloche_call *call, struct cloche_error *error);
/** Changes the size of a terminal. */
CLOCHE_API enum cloche_code cloche_pty_resize(struct cloche_box *box, uint32_t pid, int cols, int rows,
                                              const struct cloche_call *call, struct cloche_error *error);
/** Closes the stdin of a process. */
CLOCHE_API enum cloche_code cloche_close_stdin(struct cloche_box *box, uint32_t pid, const struct cloche_call *call,
                                               struct cloche_error *error);
/** Sends SIGTERM or SIGKILL (15, 9). `existed` (may be NULL): false when there is no such process. */
CLOCHE_API enum cloche_code cloche_signal(struct cloche_box *box, uint32_t pid, int signal, bool *existed,
                                          const struct cloche_call *call, struct cloche_error *error);

struct cloche_process_info {
  uint32_t pid;
  const char *tag, *cmd, *cwd; /* tag and cwd may be NULL */
  const char *const *args;     /* ends with NULL */
  const struct cloche_pair *envs;
  size_t env_count;
};
struct cloche_process_list {
  const struct cloche_process_info *items;
  size_t count;
};

/** Commands and terminals that run. */
CLOCHE_API enum cloche_code cloche_processes(struct cloche_box *box, struct cloche_process_list **list,
                                             const struct cloche_call *call, struct cloche_error *error);

/* ---- files: Files of a sandbox ---- */

enum cloche_entry_type { CLOCHE_ENTRY_OTHER, CLOCHE_ENTRY_FILE, CLOCHE_ENTRY_DIRECTORY };

struct cloche_entry {
  const char *name, *path;
  enum cloche_entry_type type; /* of a link: of what it leads to */
  bool is_symlink;
  int64_t size;
  uint32_t mode;
  const char *permissions, *owner, *group, *modified; /* RFC 3339 */
  const char *symlink_target;                         /* NULL: no link */
  const struct cloche_pair *metadata;
  size_t metadata_count;
};
struct cloche_entry_list {
  const struct cloche_entry *items;
  size_t count;
};
/* Progress of a transfer; a result other than 0 ends it. `total` is -1 where it isn't known. */
typedef int cloche_progress_fn(int64_t done, int64_t total, void *user);

struct cloche_file {
  size_t size;
  const char *user_name;              /* whose home relative paths begin at, who owns what is made */
  const struct cloche_pair *metadata; /* of writes */
  size_t metadata_count;
  cloche_progress_fn *on_progress;
  void *user;
};

/** The whole of a file. The deadline (default 60 s) is the longest time without progress, as of all transfers. */
CLOCHE_API enum cloche_code cloche_read(struct cloche_box *box, const char *path, const struct cloche_file *options,
                                        struct cloche_text **content, const struct cloche_call *call,
                                        struct cloche_error *error);
/** Writes a file, parents included. `entry` may be NULL. The data must stay until the call has ended. */
CLOCHE_API enum cloche_code cloche_write(struct cloche_box *box, const char *path, const void *data, size_t len,
                                         const struct cloche_file *options, struct cloche_entry **entry,
                                         const struct cloche_call *call, struct cloche_error *error);
/** Copies a file to a descriptor. `bytes` (may be NULL): how many. */
CLOCHE_API enum cloche_code cloche_read_fd(struct cloche_box *box, const char *path, int fd,
                                           const struct cloche_file *options, int64_t *bytes,
                                           const struct cloche_call *call, struct cloche_error *error);
/** Copies what a descriptor has (until its end) to a file. `entry` may be NULL. */
CLOCHE_API enum cloche_code cloche_write_fd(struct cloche_box *box, const char *path, int fd,
                                            const struct cloche_file *options, struct cloche_entry **entry,
                                            const struct cloche_call *call, struct cloche_error *error);
/** Entries of a directory, `depth` levels (0: 1), depth first. */
CLOCHE_API enum cloche_code cloche_list_dir(struct cloche_box *box, const char *path, int depth,
                                            const struct cloche_file *options, struct cloche_entry_list **list,
                                            const struct cloche_call *call, struct cloche_error *error);
/** One entry; of a link the link itself. */
CLOCHE_API enum cloche_code cloche_stat(struct cloche_box *box, const char *path, const struct cloche_file *options,
                                        struct cloche_entry **entry, const struct cloche_call *call,
                                        struct cloche_error *error);
/** Whether there is something of that name. */
CLOCHE_API enum cloche_code cloche_exists(struct cloche_box *box, const char *path, const struct cloche_file *options,
                                          bool *exists, const struct cloche_call *call, struct cloche_error *error);
/** Makes a directory and its parents. `made` (may be NULL): false when it was there. */
CLOCHE_API enum cloche_code cloche_make_dir(struct cloche_box *box, const char *path, const struct cloche_file *options,
                                            bool *made, const struct cloche_call *call, struct cloche_error *error);
/** Renames or moves. `entry` may be NULL. */
CLOCHE_API enum cloche_code cloche_move(struct cloche_box *box, const char *from, const char *to,
                                        const struct cloche_file *options, struct cloche_entry **entry,
                                        const struct cloche_call *call, struct cloche_error *error);
/** Removes a file, or a directory with all it holds. What is not there counts as removed. */
CLOCHE_API enum cloche_code cloche_remove(struct cloche_box *box, const char *path, const struct cloche_file *options,
                                          const struct cloche_call *call, struct cloche_error *error);

enum cloche_watch_type {
  CLOCHE_WATCH_CREATE = 1,
  CLOCHE_WATCH_WRITE,
  CLOCHE_WATCH_REMOVE,
  CLOCHE_WATCH_RENAME,
  CLOCHE_WATCH_CHMOD
};
struct cloche_watch_event {
  enum cloche_watch_type type;
  const char *name;                 /* relative to the directory */
  const struct cloche_entry *entry; /* where asked for and known */
};
struct cloche_watch {
  size_t size;
  const char *user_name;
  bool recursive, with_entries, network_mounts;
  int (*on_start)(void *user); /* the watch is active: what changes from now on is told */
  int (*on_event)(const struct cloche_watch_event *event, void *user);
  void *user;
};

/** Tells changes below a directory until cancelled: by the call's cancel handle, its op, or a callback's result. */
CLOCHE_API enum cloche_code cloche_watch(struct cloche_box *box, const char *path, const struct cloche_watch *options,
                                         const struct cloche_call *call, struct cloche_error *error);
/** A URL that reads a file without a token. `expires_s` 0: never. No request is sent. */
CLOCHE_API enum cloche_code cloche_download_url(const struct cloche_box *box, const char *path, const char *user_name,
                                                int64_t expires_s, char **url, struct cloche_error *error);
/** A URL that takes a POST of a file. `path` may be NULL: then the posted form names it. */
CLOCHE_API enum cloche_code cloche_upload_url(const struct cloche_box *box, const char *path, const char *user_name,
                                              int64_t expires_s, char **url, struct cloche_error *error);

/* ---- git: Git in a sandbox ---- */

/* What calls of this group take; each uses what makes sense for it. Credentials reach git by its environment: they are
 * in no URL, file or process list. */
struct cloche_git {
  size_t size;
  const char *user_name; /* of the sandbox */
  const struct cloche_pair *envs;
  size_t env_count;
  const char *git_user, *git_password; /* for http(s) remotes */
  const char *branch;                  /* clone, push, pull; init: the first branch */
  const char *remote;                  /* push, pull */
  int depth;                           /* clone */
  bool bare;                           /* init */
  bool fetch, overwrite;               /* remote_add */
  bool force;                          /* delete_branch */
  bool no_upstream;                    /* push: don't set the upstream */
  bool allow_empty;                    /* commit */
  const char *author_name, *author_email;
  const char *mode, *target; /* reset: soft, mixed, hard, merge, keep; restore: the source */
  bool staged, worktree;     /* restore; both false: the work tree */
  const char *scope;         /* config: global (default), local, system */
};

struct cloche_git_file {
  const char *name, *status; /* modified, added, deleted, renamed, copied, conflict, typechange, untracked, unknown */
  const char *renamed_from;  /* NULL: not renamed */
  char index_status, worktree_status;
  bool staged;
};
struct cloche_git_status {
  const char *branch, *upstream; /* NULL: none */
  int ahead, behind;
  bool detached;
  const struct cloche_git_file *files;
  size_t file_count, staged_count, unstaged_count, untracked_count, conflict_count;
};
struct cloche_git_branches {
  const char *const *names; /* ends with NULL */
  const char *current;      /* NULL: none */
};

/** Clones a repository. `path` NULL: as git names it. `result` may be NULL here and below. Errors of the group:
 * CLOCHE_EAUTH when credentials are wanted, CLOCHE_ECOMMAND with what git said. */
CLOCHE_API enum cloche_code cloche_git_clone(struct cloche_box *box, const char *url, const char *path,
                                             const struct cloche_git *options, struct cloche_command_result **result,
                                             const struct cloche_call *call, struct cloche_error *error);
/** Makes a repository. */
CLOCHE_API enum cloche_code cloche_git_init(struct cloche_box *box, const char *path, const struct cloche_git *options,
                                            struct cloche_command_result **result, const struct cloche_call *call,
                                            struct cloche_error *error);
/** Adds a remote. */
CLOCHE_API enum cloche_code cloche_git_remote_add(struct cloche_box *box, const char *path, const char *name,
                                                  const char *url, const struct cloche_git *options,
                                                  struct cloche_command_result **result, const struct cloche_call *call,
                                                  struct cloche_error *error);
/** The URL of a remote; `*url` is NULL when there is none. */
CLOCHE_API enum cloche_code cloche_git_remote_get(struct cloche_box *box, const char *path, const char *name,
                                                  const struct cloche_git *options, struct cloche_text **url,
                                                  const struct cloche_call *call, struct cloche_error *error);
/** The state of the work tree. */
CLOCHE_API enum cloche_code cloche_git_status(struct cloche_box *box, const char *path,
                                              const struct cloche_git *options, struct cloche_git_status **status,
                                              const struct cloche_call *call, struct cloche_error *error);
/** The local branches. */
CLOCHE_API enum cloche_code cloche_git_branches(struct cloche_box *box, const char *path,
                                                const struct cloche_git *options, struct cloche_git_branches **branches,
                                                const struct cloche_call *call, struct cloche_error *error);
/** Makes a branch and goes to it. */
CLOCHE_API enum cloche_code cloche_git_create_branch(struct cloche_box *box, const char *path, const char *branch,
                                                     const struct cloche_git *options,
                                                     struct cloche_command_result **result,
                                                     const struct cloche_call *call, struct cloche_error *error);
/** Goes to a branch. */
CLOCHE_API enum cloche_code cloche_git_checkout(struct cloche_box *box, const char *path, const char *branch,
                                                const struct cloche_git *options, struct cloche_command_result **result,
                                                const struct cloche_call *call, struct cloche_error *error);
/** Deletes a branch. */
CLOCHE_API enum cloche_code cloche_git_delete_branch(struct cloche_box *box, const char *path, const char *branch,
                                                     const struct cloche_git *options,
                                                     struct cloche_command_result **result,
                                                     const struct cloche_call *call, struct cloche_error *error);
/** Stages files (ends with NULL); `files` NULL: all. */
CLOCHE_API enum cloche_code cloche_git_add(struct cloche_box *box, const char *path, const char *const *files,
                                           const struct cloche_git *options, struct cloche_command_result **result,
                                           const struct cloche_call *call, struct cloche_error *error);
/** Commits what is staged. */
CLOCHE_API enum cloche_code cloche_git_commit(struct cloche_box *box, const char *path, const char *message,
                                              const struct cloche_git *options, struct cloche_command_result **result,
                                              const struct cloche_call *call, struct cloche_error *error);
/** Resets to `target`, or (files given) unstages them. */
CLOCHE_API enum cloche_code cloche_git_reset(struct cloche_box *box, const char *path, const char *const *files,
                                             const struct cloche_git *options, struct cloche_command_result **result,
                                             const struct cloche_call *call, struct cloche_error *error);
/** Restores files (ends with NULL). */
CLOCHE_API enum cloche_code cloche_git_restore(struct cloche_box *box, const char *path, const char *const *files,
                                               const struct cloche_git *options, struct cloche_command_result **result,
                                               const struct cloche_call *call, struct cloche_error *error);
/** Pushes. */
CLOCHE_API enum cloche_code cloche_git_push(struct cloche_box *box, const char *path, const struct cloche_git *options,
                                            struct cloche_command_result **result, const struct cloche_call *call,
                                            struct cloche_error *error);
/** Pulls. */
CLOCHE_API enum cloche_code cloche_git_pull(struct cloche_box *box, const char *path, const struct cloche_git *options,
                                            struct cloche_command_result **result, const struct cloche_call *call,
                                            struct cloche_error *error);
/** Sets a value of the configuration. `path` may be NULL unless the scope is local. */
CLOCHE_API enum cloche_code cloche_git_set_config(struct cloche_box *box, const char *path, const char *key,
                                                  const char *value, const struct cloche_git *options,
                                                  struct cloche_command_result **result, const struct cloche_call *call,
                                                  struct cloche_error *error);
/** A value of the configuration; `*value` is NULL when there is none. */
CLOCHE_API enum cloche_code cloche_git_get_config(struct cloche_box *box, const char *path, const char *key,
                                                  const struct cloche_git *options, struct cloche_text **value,
                                                  const struct cloche_call *call, struct cloche_error *error);
/** Sets the name and address that commits carry. */
CLOCHE_API enum cloche_code cloche_git_configure_user(struct cloche_box *box, const char *path, const char *name,
                                                      const char *email, const struct cloche_git *options,
                                                      struct cloche_command_result **result,
                                                      const struct cloche_call *call, struct cloche_error *error);
/** Stores credentials in the sandbox for all later commands, readable there: prefer git_user and git_password. `host`
 * NULL: github.com. */
CLOCHE_API enum cloche_code cloche_git_authenticate(struct cloche_box *box, const char *host,
                                                    const struct cloche_git *options,
                                                    struct cloche_command_result **result,
                                                    const struct cloche_call *call, struct cloche_error *error);

/* ---- templates: Templates ---- */

/** An empty recipe, based on the server's default image. NULL: no memory. */
CLOCHE_API struct cloche_recipe *cloche_recipe_new(void);
/** Frees a recipe. NULL is allowed. */
CLOCHE_API void cloche_recipe_free(struct cloche_recipe *recipe);
/** Starts from an image of a registry. */
CLOCHE_API enum cloche_code cloche_recipe_from_image(struct cloche_recipe *recipe, const char *image);
/** Starts from an image of a registry that wants a name and a password. */
CLOCHE_API enum cloche_code cloche_recipe_registry(struct cloche_recipe *recipe, const char *user_name,
                                                   const char *password);
/** Starts from another template. */
CLOCHE_API enum cloche_code cloche_recipe_from_template(struct cloche_recipe *recipe, const char *name);
/** Takes a Dockerfile's text, with its base. COPY and ADD read from cloche_recipe_context(). */
CLOCHE_API enum cloche_code cloche_recipe_dockerfile(struct cloche_recipe *recipe, const char *text,
                                                     struct cloche_error *error);
/** The local directory that copied files are in; default: the working directory. */
CLOCHE_API enum cloche_code cloche_recipe_context(struct cloche_recipe *recipe, const char *directory);
/** Runs a command. `user_name` NULL: the current one. */
CLOCHE_API enum cloche_code cloche_recipe_run(struct cloche_recipe *recipe, const char *command, const char *user_name);
/** Copies a file or directory of the context. `owner` and `mode` ("0755") may be NULL. */
CLOCHE_API enum cloche_code cloche_recipe_copy(struct cloche_recipe *recipe, const char *source, const char *to,
                                               const char *owner, const char *mode);
/** Sets an environment variable. */
CLOCHE_API enum cloche_code cloche_recipe_env(struct cloche_recipe *recipe, const char *name, const char *value);
/** Sets the working directory. */
CLOCHE_API enum cloche_code cloche_recipe_workdir(struct cloche_recipe *recipe, const char *path);
/** Sets the user, making it where needed. */
CLOCHE_API enum cloche_code cloche_recipe_user(struct cloche_recipe *recipe, const char *name);
/** The command that runs in every sandbox of the template, and the one that says when it is ready (NULL: none). */
CLOCHE_API enum cloche_code cloche_recipe_start(struct cloche_recipe *recipe, const char *start, const char *ready);
/** Builds all steps from here on anew. */
CLOCHE_API enum cloche_code cloche_recipe_force(struct cloche_recipe *recipe);

struct cloche_build_entry {
  const char *timestamp, *level, *message, *step;
};
struct cloche_build_info {
  const char *template_id, *build_id, *status; /* waiting, building, ready, error */
  const char *reason, *reason_step;            /* of an error */
  const struct cloche_build_entry *logs;       /* from the asked offset on */
  size_t log_count;
};
struct cloche_build {
  size_t size;
  const char *const *tags; /* ends with NULL */
  int cpu_count, memory_mb;
  bool force;      /* build all steps anew */
  bool background; /* return when the build has begun */
  int (*on_log)(const struct cloche_build_entry *entry, void *user);
  void *user;
  const char *isolation; /* of its sandboxes: "process", "microvm" or NULL, what the team or the server has */
};

/** Builds a template under a name. No deadline unless given. `info` may be NULL. */
CLOCHE_API enum cloche_code cloche_build(struct cloche *client, struct cloche_recipe *recipe, const char *name,
                                         const struct cloche_build *options, struct cloche_build_info **info,
                                         const struct cloche_call *call, struct cloche_error *error);
/** How a build is getting on; logs from `log_offset` on. */
CLOCHE_API enum cloche_code cloche_build_status(struct cloche *client, const char *template_id, const char *build_id,
                                                int log_offset, struct cloche_build_info **info,
                                                const struct cloche_call *call, struct cloche_error *error);

struct cloche_template_info {
  const char *id, *build_id, *build_status, *created_at, *updated_at;
  const char *const *aliases; /* each ends with NULL */
  const char *const *names;
  int64_t cpu_count, memory_mb, disk_mb, build_count, spawn_count;
  bool is_public;
  const char *raw;
};
struct cloche_template_list {
  const struct cloche_template_info *items;
  size_t count;
};
struct cloche_tag {
  const char *tag, *build_id, *created_at;
};
struct cloche_tag_list {
  const struct cloche_tag *items;
  size_t count;
};

/** The team's templates. */
CLOCHE_API enum cloche_code cloche_templates(struct cloche *client, struct cloche_template_list **list,
                                             const struct cloche_call *call, struct cloche_error *error);
/** Whether a name (or name:tag) is there. */
CLOCHE_API enum cloche_code cloche_template_exists(struct cloche *client, const char *name, bool *exists,
                                                   const struct cloche_call *call, struct cloche_error *error);
/** Deletes a template. `existed` may be NULL. */
CLOCHE_API enum cloche_code cloche_template_delete(struct cloche *client, const char *name, bool *existed,
                                                   const struct cloche_call *call, struct cloche_error *error);
/** Puts tags (ends with NULL) on the build that "name[:tag]" means. */
CLOCHE_API enum cloche_code cloche_tags_assign(struct cloche *client, const char *target, const char *const *tags,
                                               const struct cloche_call *call, struct cloche_error *error);
/** Takes tags (ends with NULL) away. */
CLOCHE_API enum cloche_code cloche_tags_remove(struct cloche *client, const char *name, const char *const *tags,
                                               const struct cloche_call *call, struct cloche_error *error);
/** The tags of a template. */
CLOCHE_API enum cloche_code cloche_tags(struct cloche *client, const char *name, struct cloche_tag_list **list,
                                        const struct cloche_call *call, struct cloche_error *error);

/* ---- volumes: Volumes and secrets ---- */

struct cloche_volume {
  const char *id, *name, *token, *domain; /* token and domain: NULL in lists */
};
struct cloche_volume_list {
  const struct cloche_volume *items;
  size_t count;
};
struct cloche_volume_entry {
  const char *name, *type, *path, *target; /* type: file, directory, symlink, unknown */
  int64_t size, mode, uid, gid;
  const char *atime, *mtime, *ctime;
};
struct cloche_volume_entry_list {
  const struct cloche_volume_entry *items;
  size_t count;
};
struct cloche_volume_write {
  size_t size;
  int uid, gid, mode; /* 0: the server's defaults */
  bool force;         /* replace what is there; of directories: make parents, accept an existing one */
  cloche_progress_fn *on_progress;
  void *user;
};

/** Makes a volume. */
CLOCHE_API enum cloche_code cloche_volume_create(struct cloche *client, const char *name, struct cloche_volume **volume,
                                                 const struct cloche_call *call, struct cloche_error *error);
/** A volume with a token for its content. */
CLOCHE_API enum cloche_code cloche_volume_get(struct cloche *client, const char *id, struct cloche_volume **volume,
                                              const struct cloche_call *call, struct cloche_error *error);
/** The team's volumes. */
CLOCHE_API enum cloche_code cloche_volumes(struct cloche *client, struct cloche_volume_list **list,
                                           const struct cloche_call *call, struct cloche_error *error);
/** Deletes a volume. `existed` may be NULL. */
CLOCHE_API enum cloche_code cloche_volume_delete(struct cloche *client, const char *id, bool *existed,
                                                 const struct cloche_call *call, struct cloche_error *error);
/** One entry of a volume. */
CLOCHE_API enum cloche_code cloche_volume_stat(struct cloche *client, const struct cloche_volume *volume,
                                               const char *path, struct cloche_volume_entry **entry,
                                               const struct cloche_call *call, struct cloche_error *error);
/** Changes owner and mode; values below 0 stay. */
CLOCHE_API enum cloche_code cloche_volume_chmod(struct cloche *client, const struct cloche_volume *volume,
                                                const char *path, int uid, int gid, int mode,
                                                struct cloche_volume_entry **entry, const struct cloche_call *call,
                                                struct cloche_error *error);
/** Entries of a directory of a volume. */
CLOCHE_API enum cloche_code cloche_volume_list_dir(struct cloche *client, const struct cloche_volume *volume,
                                                   const char *path, int depth, struct cloche_volume_entry_list **list,
                                                   const struct cloche_call *call, struct cloche_error *error);
/** Makes a directory. `entry` may be NULL. */
CLOCHE_API enum cloche_code cloche_volume_make_dir(struct cloche *client, const struct cloche_volume *volume,
                                                   const char *path, const struct cloche_volume_write *options,
                                                   struct cloche_volume_entry **entry, const struct cloche_call *call,
                                                   struct cloche_error *error);
/** Removes a file, or a directory with all it holds. `existed` may be NULL. */
CLOCHE_API enum cloche_code cloche_volume_remove(struct cloche *client, const struct cloche_volume *volume,
                                                 const char *path, bool *existed, const struct cloche_call *call,
                                                 struct cloche_error *error);
/** The whole of a file. */
CLOCHE_API enum cloche_code cloche_volume_read(struct cloche *client, const struct cloche_volume *volume,
                                               const char *path, struct cloche_text **content,
                                               const struct cloche_call *call, struct cloche_error *error);
/** Copies a file to a descriptor. `bytes` may be NULL. */
CLOCHE_API enum cloche_code cloche_volume_read_fd(struct cloche *client, const struct cloche_volume *volume,
                                                  const char *path, int fd, int64_t *bytes,
                                                  const struct cloche_call *call, struct cloche_error *error);
/** Writes a file. `entry` may be NULL. The data must stay until the call has ended. */
CLOCHE_API enum cloche_code cloche_volume_write(struct cloche *client, const struct cloche_volume *volume,
                                                const char *path, const void *data, size_t len,
                                                const struct cloche_volume_write *options,
                                                struct cloche_volume_entry **entry, const struct cloche_call *call,
                                                struct cloche_error *error);
/** Copies what a descriptor has to a file. `entry` may be NULL. */
CLOCHE_API enum cloche_code cloche_volume_write_fd(struct cloche *client, const struct cloche_volume *volume,
                                                   const char *path, int fd, const struct cloche_volume_write *options,
                                                   struct cloche_volume_entry **entry, const struct cloche_call *call,
                                                   struct cloche_error *error);

struct cloche_secret {
  const char *id, *name, *created_at, *updated_at;
  int64_t version;
  const struct cloche_pair *metadata;
  size_t metadata_count;
};
struct cloche_secret_list {
  const struct cloche_secret *items;
  size_t count;
  const char *next;
};

/** Keeps a value under a name, for header rules of sandboxes; it is never told again. Metadata may be NULL. */
CLOCHE_API enum cloche_code cloche_secret_create(struct cloche *client, const char *name, const char *value,
                                                 const struct cloche_pair *metadata, size_t metadata_count,
                                                 struct cloche_secret **secret, const struct cloche_call *call,
                                                 struct cloche_error *error);
/** Gives a secret another value; metadata NULL: stays. */
CLOCHE_API enum cloche_code cloche_secret_update(struct cloche *client, const char *name, const char *value,
                                                 const struct cloche_pair *metadata, size_t metadata_count,
                                                 struct cloche_secret **secret, const struct cloche_call *call,
                                                 struct cloche_error *error);
/** A secret by its name or ID, without its value. */
CLOCHE_API enum cloche_code cloche_secret_get(struct cloche *client, const char *name, struct cloche_secret **secret,
                                              const struct cloche_call *call, struct cloche_error *error);
/** One page of secrets. `next` may be NULL, `limit` 0. */
CLOCHE_API enum cloche_code cloche_secrets(struct cloche *client, int limit, const char *next,
                                           struct cloche_secret_list **list, const struct cloche_call *call,
                                           struct cloche_error *error);
/** Deletes a secret. `existed` may be NULL. */
CLOCHE_API enum cloche_code cloche_secret_delete(struct cloche *client, const char *name, bool *existed,
                                                 const struct cloche_call *call, struct cloche_error *error);

#ifdef __cplusplus
}
#endif
#endif
