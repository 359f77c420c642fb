/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an operation: begun, dispatched when something came of its request, ended once. Errors are values. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"

static const char *const code_names[] = {"CLOCHE_OK",        "CLOCHE_ENOMEM",    "CLOCHE_EINVAL", "CLOCHE_ENET",
                                         "CLOCHE_ETIMEOUT",  "CLOCHE_ECANCELED", "CLOCHE_EAUTH",  "CLOCHE_EDENIED",
                                         "CLOCHE_ENOTFOUND", "CLOCHE_EEXISTS",   "CLOCHE_EGONE",  "CLOCHE_EPORT",
                                         "CLOCHE_ELIMIT",    "CLOCHE_EBUSY",     "CLOCHE_ESPACE", "CLOCHE_EPROTO",
                                         "CLOCHE_ESERVER",   "CLOCHE_ESYSTEM",   "CLOCHE_EBUILD", "CLOCHE_ECOMMAND"};

const char *cloche_code_name(enum cloche_code code)
{
  return (size_t)code < sizeof code_names / sizeof code_names[0] ? code_names[code] : "CLOCHE_E?";
}

void cloche_error_clear(struct cloche_error *error)
{
  if (!error)
    return;
  free(error->message);
  free(error->cause);
  *error = (struct cloche_error){0};
}

static void error_text(struct cloche_error *error, enum cloche_code code, const char *format, va_list args)
{
  char *text = NULL;
  char small[1024];
  int n = vsnprintf(small, sizeof small, format, args);
  if (n >= 0)
    text = strdup(small);
  free(error->message);
  error->message = text;
  error->code = code;
}

enum cloche_code error_set(struct cloche_error *error, enum cloche_code code, const char *format, ...)
{
  if (!error)
    return code;
  cloche_error_clear(error);
  va_list args;
  va_start(args, format);
  error_text(error, code, format, args);
  va_end(args);
  return code;
}

enum cloche_code op_fail(struct cloche_op *op, enum cloche_code code, const char *format, ...)
{
  cloche_error_clear(&op->error);
  va_list args;
  va_start(args, format);
  error_text(&op->error, code, format, args);
  va_end(args);
  op->error.http_status = op->head_seen ? (int)op->status : 0;
  op->failed = code;
  return code;
}

void op_error_from(struct cloche_op *op, const struct cloche_error *error)
{
  op_fail(op, error->code, "%s", error->message ? error->message : "");
  op->error.http_status = error->http_status;
  op->error.cause = error->cause ? strdup(error->cause) : NULL;
}

enum cloche_code op_no_memory(struct cloche_error *error)
{
  if (error) {
    cloche_error_clear(error);
    error->code = CLOCHE_ENOMEM;
  }
  return CLOCHE_ENOMEM;
}

struct cloche_op *cloche_op_new(struct cloche *client, cloche_done_fn *done, void *user)
{
  struct cloche_op *op = calloc(1, sizeof *op);
  if (!op)
    return NULL;
  op->client = client;
  op->done = done;
  op->user = user;
  op->ended = true;
  op->source_fd = op->sink_fd = op->watch_fd = -1;
  return op;
}

bool cloche_op_done(const struct cloche_op *op)
{
  return op->ended;
}

const struct cloche_error *cloche_op_error(const struct cloche_op *op)
{
  return &op->error;
}

void op_release(struct cloche_op *op)
{
  req_drop(op);
  buf_free(&op->url);
  buf_free(&op->body);
  buf_free(&op->in);
  if (op->state && op->state_free)
    op->state_free(op->state);
  free(op->state);
  op->state = NULL;
  cloche_box_free(op->box);
  op->box = NULL;
}

/* An op from an earlier operation, made ready for the next one. */
static void op_renew(struct cloche_op *op)
{
  op_release(op);
  cloche_error_clear(&op->error);
  struct cloche_op fresh = {.client = op->client, .done = op->done, .user = op->user, .own = op->own};
  *op = fresh;
  op->source_fd = op->sink_fd = op->watch_fd = -1;
  op->source_size = op->retry_at = op->deadline = -1;
  op->ended = true;
}

void op_restart_clock(struct cloche_op *op)
{
  op->progress_at = now_ms();
  op->deadline = op->timeout_ms > 0 ? op->progress_at + op->timeout_ms : -1;
}

static long default_timeout(const struct cloche *c, enum op_kind kind)
{
  static const long ms[] = {[OP_TRANSFER] = 60000, [OP_CELL] = 300000, [OP_COMMAND] = 60000, [OP_ENDLESS] = -1};
  return kind == OP_CONTROL ? c->timeout_ms : ms[kind];
}

struct cloche_op *op_begin(struct cloche *c, struct cloche_box *box, const struct cloche_call *call, enum op_kind kind,
                           struct cloche_error *error)
{
  OPTIONS(cloche_call, o, call);
  client_lock(c);
  struct cloche_op *op = o.op;
  if (op && !op->ended) {
    error_set(error, CLOCHE_EINVAL, "the op is under way already");
    client_unlock(c);
    return NULL;
  }
  if (!op) {
    op = cloche_op_new(c, NULL, NULL);
    if (!op) {
      op_no_memory(error);
      client_unlock(c);
      return NULL;
    }
    op->own = true;
  }
  op_renew(op);
  op->kind = kind;
  op->timeout_ms = o.timeout_ms ? o.timeout_ms : default_timeout(c, kind);
  op->cancel = o.cancel;
  op->box = box ? box_ref(box) : NULL;
  op->in.max = c->max_answer;
  op_restart_clock(op);
  return op;
}

/* An op of the caller's needs no memory: it can only be under way. */
enum cloche_code op_not_begun(const struct cloche_call *call)
{
  OPTIONS(cloche_call, o, call);
  return o.op ? CLOCHE_EINVAL : CLOCHE_ENOMEM;
}

bool op_state(struct cloche_op *op, size_t size, void (*state_free)(void *state))
{
  op->state = calloc(1, size);
  op->state_free = state_free;
  if (!op->state)
    op->failed = CLOCHE_ENOMEM;
  return op->state != NULL;
}

void op_link(struct cloche_op *op)
{
  op->prev = NULL;
  op->next = op->client->ops;
  if (op->next)
    op->next->prev = op;
  op->client->ops = op;
  op->linked = true;
  op->ended = false;
}

static void op_unlink(struct cloche_op *op)
{
  if (!op->linked)
    return;
  if (op->prev)
    op->prev->next = op->next;
  else
    op->client->ops = op->next;
  if (op->next)
    op->next->prev = op->prev;
  op->prev = op->next = NULL;
  op->linked = false;
}

void op_end(struct cloche_op *op, enum cloche_code code)
{
  if (op->busy) { /* its own callback ends it: the dispatcher does, after the callback */
    op->cancel_pending = true;
    return;
  }
  if (op->ended && !op->linked)
    return;
  if (code == CLOCHE_ECANCELED && op->error.code == CLOCHE_OK)
    op_fail(op, code, "canceled");
  if (code == CLOCHE_ENOMEM && op->error.code != CLOCHE_ENOMEM)
    op_no_memory(&op->error);
  if (code == CLOCHE_OK)
    cloche_error_clear(&op->error);
  op_unlink(op);
  op_release(op);
  op->ended = true;
  if (op->client->waiters)
    pthread_cond_broadcast(&op->client->turn);
  if (op->done)
    op->done(op, code == CLOCHE_OK ? NULL : &op->error, op->user);
}

/* The answer to "does the sandbox live?" after its connection broke. */
static enum cloche_code probed(struct cloche_op *op)
{
  bool answered = op->result == CURLE_OK;
  if (answered && op->status == 502)
    return reply_failed(op);
  return op_fail(op, CLOCHE_ENET, "the connection was lost: %s", op->execution_id);
}

static enum cloche_code broken(struct cloche_op *op)
{
  if (op->in.failed || op->result == CURLE_OUT_OF_MEMORY) {
    if (op->in.max && op->in.len + READ_BYTES >= op->in.max)
      return op_fail(op, CLOCHE_EPROTO, "the answer is longer than %zu bytes", op->in.max);
    return CLOCHE_ENOMEM;
  }
  const char *why = op->curl_error[0] ? op->curl_error : curl_easy_strerror(op->result);
  if (op->result == CURLE_URL_MALFORMAT || op->result == CURLE_UNSUPPORTED_PROTOCOL)
    return op_fail(op, CLOCHE_EINVAL, "%s: %s", op->url.data, why);
  if (op->failed != CLOCHE_OK)
    return op->failed; /* a read or write of a local descriptor */
  if (!op->box || op->is_api)
    return op_fail(op, CLOCHE_ENET, "%s: %s", op->url.data, why);
  char kept[sizeof op->execution_id];
  snprintf(kept, sizeof kept, "%.100s", why);
  req_reset(op);
  op->streaming = false;
  op->on_data = NULL;
  req_box(op, AGENT_PORT, "GET", "/health");
  op->probing = true;
  op->kind = OP_CONTROL;
  op->timeout_ms = 5000;
  op_restart_clock(op);
  memcpy(op->execution_id, kept, sizeof kept);
  return req_send(op) ? OP_AGAIN : op->failed;
}

static bool may_retry(struct cloche_op *op)
{
  return op->is_api && !op->streaming && (op->status == 429 || op->status == 503) && !op->stop_retry &&
         op->tries < op->client->retries && op->source_fd < 0;
}

static enum cloche_code finished(struct cloche_op *op)
{
  op->finished = false;
  if (op->probing)
    return probed(op);
  if (op->result != CURLE_OK || op->in.failed)
    return broken(op);
  if (may_retry(op)) {
    long wait = op->retry_after > 0 ? op->retry_after * 1000 : 100L << op->tries;
    if (op->deadline < 0 || now_ms() + wait < op->deadline) {
      op->tries++;
      op->retry_at = now_ms() + wait;
      req_drop(op);
      return OP_AGAIN;
    }
  }
  return op->on_reply(op);
}

static enum cloche_code timed_out(struct cloche_op *op)
{
  const char *what = op->kind == OP_TRANSFER ? "no progress" : "not done";
  return op_fail(op, CLOCHE_ETIMEOUT, "%s within %ld ms", what, op->timeout_ms);
}

/* What is left of a stream whose connection broke is still looked at; then the break itself. */
static enum cloche_code dispatch(struct cloche_op *op)
{
  int64_t now = now_ms();
  if (op->cancel && atomic_load(&op->cancel->fired))
    return op_fail(op, CLOCHE_ECANCELED, "canceled");
  if (op->retry_at >= 0 && now >= op->retry_at) {
    op->retry_at = -1;
    op->head_seen = false;
    buf_free(&op->in);
    return req_send(op) ? OP_AGAIN : op->failed;
  }
  op->fresh = false;
  if (op->on_data && op->head_seen && op->in.len && reply_good(op)) {
    enum cloche_code code = op->on_data(op);
    if (code != CLOCHE_OK)
      return code;
    if (op->paused && !op->source_waits && op->easy) { /* one message may be longer than what waits at most */
      op->paused = false;
      curl_easy_pause(op->easy, CURLPAUSE_CONT);
    }
    if (op->finished && op->sink_fd >= 0 && op->in.len)
      return OP_AGAIN;
  }
  if (op->finished)
    return finished(op);
  int64_t due = op->kind == OP_TRANSFER && op->deadline >= 0 ? op->progress_at + op->timeout_ms : op->deadline;
  if (due >= 0 && now >= due)
    return op->probing ? probed(op) : timed_out(op);
  return OP_AGAIN;
}

void op_dispatch(struct cloche_op *op)
{
  op->busy = true;
  enum cloche_code code = dispatch(op);
  op->busy = false;
  if (op->free_pending) {
    op->done = NULL;
    op_end(op, CLOCHE_ECANCELED);
    cloche_error_clear(&op->error);
    free(op);
    return;
  }
  if (code == OP_AGAIN && op->cancel_pending)
    code = CLOCHE_ECANCELED;
  if (code != OP_AGAIN)
    op_end(op, code);
}

enum cloche_code op_go(struct cloche_op *op, struct cloche_error *error)
{
  struct cloche *c = op->client;
  enum cloche_code code = op->failed;
  bool own = op->own;
  if (code == CLOCHE_OK && (op->url.failed || op->body.failed))
    code = CLOCHE_ENOMEM;
  if (code == CLOCHE_OK && !op->passive && !req_send(op))
    code = op->failed;
  if (code == CLOCHE_OK) {
    op_link(op);
    if (!own) {
      if (c->polling)
        client_wake(c);
      client_unlock(c);
      return CLOCHE_OK;
    }
    client_wait(c, &op->ended);
    code = op->error.code;
  } else {
    if (code == CLOCHE_ENOMEM)
      op_no_memory(&op->error);
    op_release(op);
    op->ended = true;
  }
  if (error && code != CLOCHE_OK) {
    cloche_error_clear(error);
    *error = op->error;
    op->error = (struct cloche_error){.code = code};
  }
  if (own) {
    cloche_error_clear(&op->error);
    free(op);
  }
  client_unlock(c);
  return code;
}

enum cloche_code cloche_op_wait(struct cloche_op *op, struct cloche_error *error)
{
  struct cloche *c = op->client;
  client_lock(c);
  if (!op->ended)
    client_wait(c, &op->ended);
  enum cloche_code code = op->error.code;
  if (error && code != CLOCHE_OK) {
    error_set(error, code, "%s", op->error.message ? op->error.message : "");
    error->http_status = op->error.http_status;
    error->cause = op->error.cause ? strdup(op->error.cause) : NULL;
  }
  client_unlock(c);
  return code;
}

void cloche_op_cancel(struct cloche_op *op)
{
  struct cloche *c = op->client;
  client_lock(c);
  if (!op->ended)
    op_end(op, CLOCHE_ECANCELED);
  client_unlock(c);
}

void cloche_op_free(struct cloche_op *op)
{
  if (!op)
    return;
  struct cloche *c = op->client;
  client_lock(c);
  if (op->busy) {
    op->free_pending = true;
  } else {
    op->done = NULL;
    if (!op->ended)
      op_end(op, CLOCHE_ECANCELED);
    op_release(op);
    cloche_error_clear(&op->error);
    free(op);
  }
  client_unlock(c);
}
