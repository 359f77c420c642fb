/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the library share. client.c drives libcurl and ops, op.c is the life of an operation, request.c
 * puts a request together, reply.c turns answers into results and errors; the others are the operations themselves.
 *
 * An operation is a cloche_op: one request at a time, on_data for what streams in, on_reply when an answer is whole.
 * Both run outside libcurl's callbacks, so that the user's callbacks may start and drive other operations.
 */
#ifndef CLOCHE_INTERNAL_H
#define CLOCHE_INTERNAL_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include "cloche.h"
#include "json.h"
#include "mem.h"

#define AGENT_PORT       49983
#define INTERPRETER_PORT 49999
#define READ_BYTES       (128 << 10) /* libcurl hands over at most so many at once */
#define STREAM_BYTES     (1 << 20)   /* of one stream wait to be looked at; then it is read no further */
#define IDLE_HANDLES     8
#define LINE_BYTES_MAX   ((size_t)1 << 30)
#define OP_AGAIN         ((enum cloche_code)1000) /* on_reply: another request was sent, or must be waited for */

struct cloche {
  pthread_mutex_t lock; /* recursive */
  pthread_cond_t turn;
  bool polling; /* a thread waits for the descriptor, without the lock */
  int depth, waiters;
  CURLM *multi;
  int epfd, wakefd;
  int64_t timer_at; /* of libcurl; -1: none */
  struct cloche_op *ops;
  CURL *idle[IDLE_HANDLES];
  int idle_count;
  char *key, *api_url, *sandbox_url, *volume_url, *domain, *ca_file, *user_agent, *proxy;
  long timeout_ms;
  int retries;
  size_t max_answer;
  int (*open_socket)(void *arg);
  void *open_socket_arg;
};

struct cloche_cancel {
  struct cloche *client;
  atomic_int fired;
};

struct cloche_box {
  struct cloche *client;
  int refs;
  char *id, *template_id, *token, *traffic_token, *domain;
};

/* What a deadline means, and its default. */
enum op_kind {
  OP_CONTROL,  /* the whole call, 60 s */
  OP_TRANSFER, /* without progress, 60 s */
  OP_CELL,     /* the whole run, 300 s */
  OP_COMMAND,  /* the whole run, 60 s */
  OP_ENDLESS   /* none */
};

struct cloche_op {
  struct cloche *client;
  struct cloche_op *prev, *next;
  cloche_done_fn *done;
  void *user;
  bool linked, ended, own, busy, cancel_pending, free_pending;
  struct cloche_error error;
  enum cloche_code failed; /* while the request is put together */
  struct cloche_cancel *cancel;
  enum op_kind kind;
  long timeout_ms;
  int64_t deadline, progress_at; /* -1: none */
  struct cloche_box *box;

  /* the request */
  const char *method;
  struct buf url, body;
  struct curl_slist *headers;
  bool is_api, streaming, passive; /* passive: no request, another op ends it */
  struct cloche_process *waits_for;
  const void *upload;
  size_t upload_len;
  int source_fd, sink_fd, watch_fd;
  bool source_waits;
  int64_t source_size, moved;
  cloche_progress_fn *on_progress;
  void *progress_user;

  /* the answer */
  CURL *easy;
  struct buf in;
  long status;
  bool head_seen, fresh, finished, paused, probing, stop_retry; /* fresh: bytes that on_data has not seen */
  bool stream_ended;                                            /* its last message has come */
  CURLcode result;
  int tries;
  long retry_after;
  int64_t retry_at; /* -1: not waiting */
  char next_token[512], execution_id[128], total_running[24];
  char curl_error[CURL_ERROR_SIZE];

  /* what is done with it */
  enum cloche_code (*on_data)(struct cloche_op *op);
  enum cloche_code (*on_reply)(struct cloche_op *op);
  void *out;
  const struct model *model;
  void *state;
  void (*state_free)(void *state);
};

int64_t now_ms(void);

/* client.c */
void client_lock(struct cloche *c);
void client_unlock(struct cloche *c);
void client_run(struct cloche *c);                     /* with the lock */
void client_wait(struct cloche *c, const bool *until); /* with the lock: drives until *until */
void client_wake(struct cloche *c);
bool client_watch(struct cloche *c, int fd, unsigned events);
void client_unwatch(struct cloche *c, int fd);
CURL *client_handle(struct cloche *c);
void client_keep(struct cloche *c, CURL *easy);

/* op.c: op_begin takes the lock of the client, op_go gives it back. */
struct cloche_op *op_begin(struct cloche *c, struct cloche_box *box, const struct cloche_call *call, enum op_kind kind,
                           struct cloche_error *error);
enum cloche_code op_not_begun(const struct cloche_call *call); /* why op_begin gave NULL */
enum cloche_code op_go(struct cloche_op *op, struct cloche_error *error);
enum cloche_code op_no_memory(struct cloche_error *error);
bool op_state(struct cloche_op *op, size_t size, void (*state_free)(void *state));
void op_link(struct cloche_op *op);
void op_end(struct cloche_op *op, enum cloche_code code);
void op_error_from(struct cloche_op *op, const struct cloche_error *error);
void op_dispatch(struct cloche_op *op);
void op_release(struct cloche_op *op); /* what the operation held; the op itself stays */
void op_restart_clock(struct cloche_op *op);
enum cloche_code op_fail(struct cloche_op *op, enum cloche_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum cloche_code error_set(struct cloche_error *error, enum cloche_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* request.c */
void req_api(struct cloche_op *op, const char *method, const char *path);
void req_box(struct cloche_op *op, int port, const char *method, const char *path);
void req_rpc(struct cloche_op *op, const char *method, bool streaming, const char *user_name);
void req_url(struct cloche_op *op, const char *method, const char *url);
void req_segment(struct cloche_op *op, const char *text); /* one more part of the path, escaped */
void req_path(struct cloche_op *op, const char *text);    /* as it is */
void req_query(struct cloche_op *op, const char *name, const char *value);
void req_query_int(struct cloche_op *op, const char *name, int64_t value);
void req_header(struct cloche_op *op, const char *name, const char *value);
void req_json(struct cloche_op *op);        /* the body is JSON */
void req_stream_body(struct cloche_op *op); /* the body is one message: put it in a frame */
bool req_send(struct cloche_op *op);        /* false: op->failed says why */
void req_reset(struct cloche_op *op);       /* for the next request of the same op */
void req_drop(struct cloche_op *op);
void put_pairs(struct buf *b, const struct cloche_pair *pairs, size_t count);
void put_texts(struct buf *b, const char *const *texts);

/* reply.c */
enum field_kind { F_TEXT, F_INT, F_U32, F_DOUBLE, F_BOOL, F_RAW, F_SELF, F_PAIRS, F_TEXTS, F_LIST };
struct field {
  const char *key; /* "a.b": inside of a */
  enum field_kind kind;
  size_t offset, count_offset;
  const struct model *of;
};
struct model {
  size_t size;
  const struct field *fields;
  const char *list_key; /* of lists: the array inside of the answer; NULL: the answer is the array */
};
bool model_fill(struct arena *a, const struct model *m, const struct json *j, void *out); /* false: no memory */
bool model_array(struct arena *a, const struct model *m, const struct json *j, const void **items, size_t *count);
char *model_raw(struct arena *a, const struct json *j); /* NULL for NULL */

enum cloche_code reply_failed(struct cloche_op *op); /* the error that the answer is */
enum cloche_code reply_text_error(struct cloche_op *op, enum cloche_code code, const char *message);
enum cloche_code rpc_error(struct cloche_op *op, const struct json *error);
enum cloche_code reply_ok(struct cloche_op *op);      /* 2xx, nothing in it */
enum cloche_code reply_existed(struct cloche_op *op); /* out is bool *: false at 404 */
enum cloche_code reply_model(struct cloche_op *op);   /* out is struct ** of op->model */
enum cloche_code reply_list(struct cloche_op *op);    /* out is struct **: {items, count} and, at more, next */
enum cloche_code reply_list_next(struct cloche_op *op);
struct json *reply_json(struct cloche_op *op, struct arena *a, enum cloche_code *code);
bool reply_good(const struct cloche_op *op);
enum cloche_code answer(struct cloche_op *op, void *result); /* gives the result to who asked, or frees it */

/* box.c */
struct cloche_box *box_new(struct cloche *c, const struct json *j);
struct cloche_box *box_ref(struct cloche_box *box);

/* frame.c: messages of a Connect stream. 1: one was taken; 0: more bytes are needed; -1: no frame. */
int frame_next(const char *data, size_t len, size_t max, unsigned char *flags, const char **payload,
               size_t *payload_len, size_t *used);
/* Calls on_message for each message in op->in, until the stream's end, whose error becomes the op's. */
enum cloche_code frame_read(struct cloche_op *op,
                            enum cloche_code (*on_message)(struct cloche_op *op, const struct json *message));
enum cloche_code frame_reply(struct cloche_op *op); /* on_reply of streams: without an end they were cut */

/* files.c */
enum cloche_code sink_write(struct cloche_op *op); /* on_data of downloads into a descriptor */
enum cloche_code reply_sink(struct cloche_op *op);
enum cloche_code reply_bytes(struct cloche_op *op);
enum cloche_code reply_entry(struct cloche_op *op);
extern const struct model entry_model;
void entry_fix(struct cloche_entry *entry, const struct json *j);

/* process.c: a command whose end is turned into something else than its result */
struct cloche_op *command_begin(struct cloche_box *box, const char *line, const struct cloche_command *o,
                                enum op_kind kind, const struct cloche_call *call, struct cloche_error *error);
enum cloche_code command_ended(struct cloche_op *op, int *exit_code, const char **out, const char **err);
enum cloche_code command_result(struct cloche_op *op);

/* recipe.c */
struct step {
  struct step *next;
  const char *type;
  char *args[4];
  int arg_count;
  bool force;
  char hash[65]; /* COPY: of its files */
  int archive;   /* and a descriptor of them; -1: none */
};
struct cloche_recipe {
  char *image, *template_name, *registry_user, *registry_password, *context, *start, *ready;
  struct step *steps, **tail;
  bool force_next;
};
/* template.c: the body that starts a build */
void put_recipe(struct buf *b, const struct cloche_recipe *r, bool force);

/* copy_files.c: files of a COPY step into an archive and its hash */
enum cloche_code copy_archive(struct step *step, const char *context, struct cloche_error *error);
/* git.c */
void put_quoted(struct buf *b, const char *text); /* as one word of a shell */

/* chart.c */
const struct cloche_chart *chart_read(struct arena *a, const struct json *j, bool *no_memory);
struct cloche_value chart_value(const struct json *j);
bool chart_values(struct arena *a, const struct json *j, const struct cloche_value **out, size_t *count);
bool chart_axis(struct arena *a, const struct json *j, char letter, struct cloche_axis *axis);
/* chart_detail.c; false: no memory. Nothing is written where there is no detail. */
bool chart_detail_read(struct arena *a, const struct json *j, const struct cloche_chart_detail **out);

/* The caller's options, as far as it knew them, in a struct of today. */
#define OPTIONS(type, name, given)                                                                                     \
  struct type name = {0};                                                                                              \
  options_copy(&name, given, sizeof name)
void options_copy(void *to, const void *given, size_t size);

#endif
