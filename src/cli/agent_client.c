/* SPDX-License-Identifier: Apache-2.0 */
/* agent_client.c - see agent_client.h. */
#include "cli/agent_client.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#define RAW_MAX   ((size_t)256 << 10)
#define BODY_MAX  ((size_t)4 << 20)
#define FRAME_END 2

int agent_client_token(struct line *l, const char *id, char token[AGENT_CLIENT_TOKEN], struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_BOX_TOKEN, 1, 0);
  wire_putz(&b, W_ID, id);
  int r = admin_call(l, &b, NULL, NULL, err);
  if (!r && wire_copyz(buf_str(&b), W_SECRET, token, AGENT_CLIENT_TOKEN))
    r = err_set(err, -EPROTO, "the server returned no token for sandbox %s", id);
  return r;
}

int agent_client_open(struct agent_client *in, struct line *l, const char *id, const char *user, struct err *err)
{
  cleanup_buf struct buf pair = BUF_INIT(300);
  *in = (struct agent_client){.line = l, .auth = BUF_INIT(4096)};
  if (str_copyz(str_of(id), in->id, sizeof(in->id)))
    return err_set(err, -EINVAL, "invalid sandbox ID '%s'", id);
  int r = agent_client_token(l, id, in->token, err);
  if (r)
    return r;
  buf_addf(&in->auth, "X-Access-Token: %s\r\n", in->token);
  if (user) {
    buf_addf(&pair, "%s:", user);
    buf_addz(&in->auth, "Authorization: Basic ");
    base64_add(&in->auth, pair.p, pair.n, true);
    buf_addz(&in->auth, "\r\n");
  }
  return buf_failed(&in->auth) || buf_failed(&pair) ? err_set(err, -E2BIG, "the user's name is too long") : 0;
}

void agent_client_close(struct agent_client *in)
{
  explicit_bzero(in->token, sizeof(in->token));
  buf_free(&in->auth);
}

static int connect_inside(struct agent_client *in, struct exchange *x, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_BOX_DIAL, 1, 0);
  wire_putz(&b, W_ID, in->id);
  wire_put_u64(&b, W_PORT, AGENT_CLIENT_PORT);
  int r = admin_fetch(in->line, &b, &x->fd, err);
  if (r == -ENOENT)
    return err_set(err, r, "no sandbox '%s' is here; cloche ps lists them", in->id);
  if (r == -EHOSTDOWN)
    return err_set(err, r, "sandbox %s is paused; run `cloche resume %s`", in->id, in->id);
  if (r || x->fd < 0)
    return err_set(err, r ? r : -EPROTO, "can't connect into sandbox %s: %s", in->id, err->msg);
  int flags = fcntl(x->fd, F_GETFL);
  fcntl(x->fd, F_SETFL, flags & ~O_NONBLOCK);
  return 0;
}

void exchange_init(struct exchange *x)
{
  *x = (struct exchange){.fd = -1, .raw = BUF_INIT(RAW_MAX), .body = BUF_INIT(BODY_MAX)};
}

void exchange_close(struct exchange *x)
{
  if (x->fd >= 0)
    close(steal_fd(&x->fd));
  buf_free(&x->raw);
  buf_free(&x->body);
}

int exchange_request(struct agent_client *in, struct exchange *x, const char *path, struct str json, bool stream,
                     struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(BODY_MAX);
  size_t length = json.n + (stream ? 5 : 0);
  int r = x->fd < 0 ? connect_inside(in, x, err) : 0;
  if (r)
    return r;
  buf_addf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nConnect-Protocol-Version: 1\r\n" STR_FMT, path, in->id,
           STR_ARG(buf_str(&in->auth)));
  buf_addf(&b, "Content-Type: application/%sjson\r\nContent-Length: %zu\r\n\r\n", stream ? "connect+" : "", length);
  if (stream) {
    const uint8_t head[5] = {0, (uint8_t)(json.n >> 24), (uint8_t)(json.n >> 16), (uint8_t)(json.n >> 8),
                             (uint8_t)json.n};
    buf_add(&b, head, sizeof(head));
  }
  buf_adds(&b, json);
  if (buf_failed(&b))
    return err_set(err, -E2BIG, "the request to the box exceeds %zu bytes", BODY_MAX);
  x->response = (struct h1_reader){0};
  buf_clear(&x->body);
  for (struct str rest = buf_str(&b); rest.n;) {
    ssize_t n = send(x->fd, rest.p, rest.n, MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR)
      return err_errno(err, "speaking to sandbox %s", in->id);
    rest = str_skip(rest, n > 0 ? (size_t)n : 0);
  }
  return 0;
}

/* ---- the answer ---- */

int exchange_read(struct exchange *x, struct err *err)
{
  char piece[32 << 10];
  ssize_t n = recv(x->fd, piece, sizeof(piece), 0);
  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return 0;
  if (n <= 0)
    return h1_reader_eof(&x->response) ? err_set(err, -ECONNRESET, "the sandbox has ended") : 0;
  int r = buf_add(&x->raw, piece, (size_t)n) ? -EMSGSIZE : 0;
  for (size_t used = 1; !r && used && !x->response.over;) {
    struct str body;
    r = h1_reader_take(&x->response, buf_str(&x->raw), &used, &body);
    if (!r && buf_adds(&x->body, body))
      r = -EMSGSIZE;
    buf_drop(&x->raw, used);
  }
  return r ? err_set(err, r, "the sandbox's agent sent an invalid response: %s", strerrordesc_np(-r)) : 0;
}

int exchange_frame(struct exchange *x, struct buf *json, bool *end)
{
  const uint8_t *p = (const uint8_t *)x->body.p;
  if (x->body.n < 5)
    return 0;
  size_t n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
  if (x->body.n < n + 5)
    return n > BODY_MAX - 5 ? -EMSGSIZE : 0;
  *end = p[0] & FRAME_END;
  buf_clear(json);
  int r = buf_add(json, x->body.p + 5, n);
  buf_drop(&x->body, n + 5);
  return r ? r : 1;
}
