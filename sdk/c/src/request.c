/* SPDX-License-Identifier: Apache-2.0 */
/* A request: its address by the rules of stock clients, its headers, and what libcurl is told about it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>
#include "internal.h"

void req_reset(struct cloche_op *op)
{
  req_drop(op);
  buf_free(&op->url);
  buf_free(&op->body);
  buf_free(&op->in);
  op->upload = NULL;
  op->upload_len = 0;
  op->source_fd = -1;
  op->head_seen = op->finished = op->fresh = op->paused = op->is_api = false;
  op->status = 0;
  op->tries = 0;
  op->next_token[0] = op->execution_id[0] = op->total_running[0] = 0;
}

void req_drop(struct cloche_op *op)
{
  if (op->watch_fd >= 0) {
    client_unwatch(op->client, op->watch_fd);
    close(op->watch_fd);
    op->watch_fd = -1;
  }
  if (op->easy) {
    curl_multi_remove_handle(op->client->multi, op->easy);
    client_keep(op->client, op->easy);
    op->easy = NULL;
  }
  if (op->retry_at < 0) { /* a retry sends the same headers again */
    curl_slist_free_all(op->headers);
    op->headers = NULL;
  }
}

void req_header(struct cloche_op *op, const char *name, const char *value)
{
  struct buf b = {0};
  buf_printf(&b, *value ? "%s: %s" : "%s:%s", name, value);
  for (size_t i = 0; i < b.len; i++)
    if (b.data[i] == '\n' || b.data[i] == '\r')
      op_fail(op, CLOCHE_EINVAL, "the header %s would have more than one line", name);
  struct curl_slist *list = b.failed ? NULL : curl_slist_append(op->headers, b.data);
  buf_free(&b);
  if (list)
    op->headers = list;
  else
    op->failed = CLOCHE_ENOMEM;
}

void req_url(struct cloche_op *op, const char *method, const char *url)
{
  op->method = method;
  buf_puts(&op->url, url);
}

void req_api(struct cloche_op *op, const char *method, const char *path)
{
  req_url(op, method, op->client->api_url);
  buf_puts(&op->url, path);
  op->is_api = true;
  req_header(op, "X-API-Key", op->client->key);
}

void req_box(struct cloche_op *op, int port, const char *method, const char *path)
{
  const struct cloche_box *box = op->box;
  char text[16];
  snprintf(text, sizeof text, "%d", port);
  op->method = method;
  if (op->client->sandbox_url)
    buf_puts(&op->url, op->client->sandbox_url);
  else
    buf_printf(&op->url, "https://%s-%s.%s", text, box->id, box->domain ? box->domain : op->client->domain);
  buf_puts(&op->url, path);
  req_header(op, "E2b-Sandbox-Id", box->id);
  req_header(op, "E2b-Sandbox-Port", text);
  if (box->token)
    req_header(op, "X-Access-Token", box->token);
  if (box->traffic_token)
    req_header(op, "E2B-Traffic-Access-Token", box->traffic_token);
}

static void add_user(struct cloche_op *op, const char *user_name)
{
  struct buf plain = {0}, coded = {0};
  buf_printf(&plain, "%s:", user_name);
  buf_puts(&coded, "Basic ");
  if (!plain.failed)
    buf_base64(&coded, plain.data, plain.len);
  if (plain.failed || coded.failed)
    op->failed = CLOCHE_ENOMEM;
  else
    req_header(op, "Authorization", coded.data);
  buf_free(&plain);
  buf_free(&coded);
}

void req_rpc(struct cloche_op *op, const char *method, bool streaming, const char *user_name)
{
  req_box(op, AGENT_PORT, "POST", method);
  op->streaming = streaming;
  req_header(op, "Content-Type", streaming ? "application/connect+json" : "application/json");
  req_header(op, "Connect-Protocol-Version", "1");
  if (streaming)
    req_header(op, "Keepalive-Ping-Interval", "50");
  if (user_name)
    add_user(op, user_name);
}

void req_path(struct cloche_op *op, const char *text)
{
  buf_puts(&op->url, text);
}

void req_segment(struct cloche_op *op, const char *text)
{
  if (!text || !*text)
    op_fail(op, CLOCHE_EINVAL, "an ID or name is empty");
  buf_puts(&op->url, "/");
  buf_escape(&op->url, text ? text : "");
}

void req_query(struct cloche_op *op, const char *name, const char *value)
{
  if (op->url.failed)
    return;
  buf_puts(&op->url, strchr(op->url.data, '?') ? "&" : "?");
  buf_puts(&op->url, name);
  buf_puts(&op->url, "=");
  buf_escape(&op->url, value);
}

void req_query_int(struct cloche_op *op, const char *name, int64_t value)
{
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)value);
  req_query(op, name, text);
}

void req_json(struct cloche_op *op)
{
  req_header(op, "Content-Type", "application/json");
}

void req_stream_body(struct cloche_op *op)
{
  struct buf framed = {0};
  size_t n = op->body.len;
  char head[5] = {0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
  buf_add(&framed, head, 5);
  if (n)
    buf_add(&framed, op->body.data, n);
  framed.failed |= op->body.failed;
  buf_free(&op->body);
  op->body = framed;
}

void put_pairs(struct buf *b, const struct cloche_pair *pairs, size_t count)
{
  buf_puts(b, "{");
  for (size_t i = 0; i < count; i++) {
    buf_puts(b, i ? "," : "");
    buf_json(b, pairs[i].name);
    buf_puts(b, ":");
    buf_json(b, pairs[i].value ? pairs[i].value : "");
  }
  buf_puts(b, "}");
}

void put_texts(struct buf *b, const char *const *texts)
{
  buf_puts(b, "[");
  for (size_t i = 0; texts && texts[i]; i++) {
    buf_puts(b, i ? "," : "");
    buf_json(b, texts[i]);
  }
  buf_puts(b, "]");
}

/* What waits of a stream never fills the buffer by itself, however small that is: only one long message does. */
static bool stream_waits(const struct cloche_op *op)
{
  size_t enough = op->in.max && op->in.max / 2 < STREAM_BYTES ? op->in.max / 2 : STREAM_BYTES;
  return op->streaming && op->in.len >= enough && op->status / 100 == 2;
}

static size_t on_write(char *data, size_t one, size_t len, void *user)
{
  struct cloche_op *op = user;
  if (stream_waits(op)) {
    /* A message may be longer than that: then it is read on, but only as long as nothing else waits. */
    if (op->fresh) {
      op->paused = true;
      return CURL_WRITEFUNC_PAUSE;
    }
  }
  op->head_seen = op->fresh = true;
  op->progress_at = now_ms();
  buf_add(&op->in, data, len);
  return op->in.failed ? 0 : len;
}

static bool header_is(const char *line, size_t len, const char *name, char *value, size_t size)
{
  size_t n = strlen(name);
  if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
    return false;
  const char *from = line + n + 1, *end = line + len;
  while (from < end && (*from == ' ' || *from == '\t'))
    from++;
  while (end > from && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
    end--;
  size_t got = (size_t)(end - from);
  if (got >= size)
    return false;
  memcpy(value, from, got);
  value[got] = 0;
  return true;
}

static size_t on_header(char *line, size_t one, size_t len, void *user)
{
  struct cloche_op *op = user;
  char value[32];
  if (len > 9 && memcmp(line, "HTTP/", 5) == 0) {
    const char *space = memchr(line, ' ', len);
    op->status = space && (size_t)(line + len - space) > 3 ? strtol(space + 1, NULL, 10) : 0;
    op->retry_after = 0;
    op->stop_retry = false;
  } else if (header_is(line, len, "Retry-After", value, sizeof value)) {
    op->retry_after = strtol(value, NULL, 10);
  } else if (header_is(line, len, "Should-Retry", value, sizeof value)) {
    op->stop_retry = strcmp(value, "true") != 0;
  } else if (!header_is(line, len, "X-Next-Token", op->next_token, sizeof op->next_token) &&
             !header_is(line, len, "X-Total-Running", op->total_running, sizeof op->total_running)) {
    header_is(line, len, "Cloche-Execution-Id", op->execution_id, sizeof op->execution_id);
  }
  return len;
}

/* Waits for a descriptor that has nothing yet; files are always ready. */
static bool source_blocks(struct cloche_op *op)
{
  struct pollfd p = {.fd = op->source_fd, .events = POLLIN};
  if (poll(&p, 1, 0) != 0)
    return false;
  op->watch_fd = dup(op->source_fd);
  if (op->watch_fd >= 0 && client_watch(op->client, op->watch_fd, EPOLLIN)) {
    op->source_waits = true;
    return true;
  }
  if (op->watch_fd >= 0)
    close(op->watch_fd);
  op->watch_fd = -1;
  return false;
}

static size_t on_read(char *data, size_t one, size_t len, void *user)
{
  struct cloche_op *op = user;
  if (source_blocks(op))
    return CURL_READFUNC_PAUSE;
  ssize_t n;
  do {
    n = read(op->source_fd, data, len);
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    op_fail(op, CLOCHE_ESYSTEM, "reading the descriptor: %s", strerror(errno));
    return CURL_READFUNC_ABORT;
  }
  op->progress_at = now_ms();
  return (size_t)n;
}

static int on_xfer(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
  struct cloche_op *op = user;
  curl_off_t sum = down + up;
  if (sum == op->moved)
    return 0;
  op->moved = sum;
  op->progress_at = now_ms();
  if (op->on_progress) {
    bool uploads = op->upload || op->source_fd >= 0;
    int64_t total = uploads ? up_total : down_total;
    if (op->on_progress(uploads ? up : down, total > 0 ? total : -1, op->progress_user) != 0) {
      op_fail(op, CLOCHE_ECANCELED, "canceled");
      return 1;
    }
  }
  return 0;
}

#define SET(option, value) ok = ok && curl_easy_setopt(easy, option, value) == CURLE_OK

static bool set_body(struct cloche_op *op, CURL *easy)
{
  bool ok = true;
  if (op->source_fd >= 0) {
    struct stat st;
    off_t at = lseek(op->source_fd, 0, SEEK_CUR);
    op->source_size = at >= 0 && fstat(op->source_fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size - at : -1;
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_READFUNCTION, on_read);
    SET(CURLOPT_READDATA, op);
    if (op->source_size >= 0)
      SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)op->source_size);
    else
      req_header(op, "Transfer-Encoding", "chunked");
  } else if (op->upload || op->body.len || strcmp(op->method, "POST") == 0 || strcmp(op->method, "PUT") == 0) {
    const void *data = op->upload ? op->upload : op->body.data ? op->body.data : "";
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(op->upload ? op->upload_len : op->body.len));
    SET(CURLOPT_POSTFIELDS, data);
  }
  return ok;
}

static curl_socket_t open_given(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
  struct cloche *c = user;
  int fd = c->open_socket(c->open_socket_arg);
  return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int is_connected(void *user, curl_socket_t fd, curlsocktype purpose)
{
  return CURL_SOCKOPT_ALREADY_CONNECTED;
}

static bool set_up(struct cloche_op *op, CURL *easy)
{
  struct cloche *c = op->client;
  bool ok = set_body(op, easy);
  SET(CURLOPT_URL, op->url.data);
  SET(CURLOPT_CUSTOMREQUEST, op->method);
  SET(CURLOPT_HTTPHEADER, op->headers);
  SET(CURLOPT_PRIVATE, op);
  SET(CURLOPT_WRITEFUNCTION, on_write);
  SET(CURLOPT_WRITEDATA, op);
  SET(CURLOPT_HEADERFUNCTION, on_header);
  SET(CURLOPT_HEADERDATA, op);
  SET(CURLOPT_ERRORBUFFER, op->curl_error);
  SET(CURLOPT_NOSIGNAL, 1L);
  SET(CURLOPT_TCP_NODELAY, 1L);
  SET(CURLOPT_TCP_KEEPALIVE, 1L);
  SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
  SET(CURLOPT_USERAGENT, c->user_agent);
  SET(CURLOPT_CONNECTTIMEOUT_MS, 30000L);
  SET(CURLOPT_BUFFERSIZE, (long)READ_BYTES);
  SET(CURLOPT_UPLOAD_BUFFERSIZE, 256L * 1024);
  if (op->kind == OP_TRANSFER) {
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_xfer);
    SET(CURLOPT_XFERINFODATA, op);
  }
  if (c->ca_file)
    SET(CURLOPT_CAINFO, c->ca_file);
  if (c->proxy)
    SET(CURLOPT_PROXY, c->proxy);
  if (c->open_socket) {
    SET(CURLOPT_OPENSOCKETFUNCTION, open_given);
    SET(CURLOPT_OPENSOCKETDATA, c);
    SET(CURLOPT_SOCKOPTFUNCTION, is_connected);
    SET(CURLOPT_PROXY, "");
  }
  return ok;
}

bool req_send(struct cloche_op *op)
{
  if (op->failed != CLOCHE_OK)
    return false;
  req_header(op, "Expect", "");
  CURL *easy = op->url.failed || op->body.failed ? NULL : client_handle(op->client);
  if (!easy) {
    op->failed = CLOCHE_ENOMEM;
    return false;
  }
  op->curl_error[0] = 0;
  op->finished = op->head_seen = op->fresh = false;
  if (!set_up(op, easy) || op->failed != CLOCHE_OK || curl_multi_add_handle(op->client->multi, easy) != CURLM_OK) {
    client_keep(op->client, easy);
    if (op->failed == CLOCHE_OK)
      op->failed = CLOCHE_ENOMEM;
    return false;
  }
  op->easy = easy;
  return true;
}
