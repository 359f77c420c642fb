/* SPDX-License-Identifier: Apache-2.0 */
/* http2_connect.c - WebSockets on a stream of HTTP/2 (extended CONNECT, RFC 8441), for servers that want them
 * (http_limits.connect).
 *
 * A handler sees what a client of HTTP/1.1 would have sent: GET with Connection, Upgrade and a key of ours, and answers
 * by http_tunnel. The stream then carries the tunnel's bytes as data, both ways, each direction ending on its own. The
 * key's answer is verified here, since the client can't: a server that did not mean the upgrade is refused. */
#include "net/http2.h"

#include <openssl/evp.h>

#define PROTOCOL "websocket"
#define KEY_TEXT 24 /* base64 of 16 bytes */
#define ACCEPTS  "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

bool connect_is_known(struct str protocol)
{
  return str_ieq(protocol, STR(PROTOCOL));
}

/* What stands in the request of HTTP/1.1 alone, or is of the key. */
static bool is_handshake(struct str name)
{
  static const char *const names[] = {"connection", "upgrade", "content-length", "sec-websocket-key",
                                      "sec-websocket-accept"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (str_ieq(name, str_of(names[i])))
      return true;
  return false;
}

int connect_head(struct arena *a, struct http_header *hv, size_t *n)
{
  uint8_t bytes[16];
  cleanup_buf struct buf key = BUF_INIT(KEY_TEXT + 1);
  size_t kept = 0;
  for (size_t i = 0; i < *n; i++)
    if (!is_handshake(hv[i].name))
      hv[kept++] = hv[i];
  random_bytes(bytes, sizeof(bytes));
  base64_add(&key, bytes, sizeof(bytes), true);
  struct str text = arena_str(a, buf_str(&key));
  if (buf_failed(&key) || !text.p)
    return 431;
  hv[kept++] = (struct http_header){STR("connection"), STR("Upgrade")};
  hv[kept++] = (struct http_header){STR("upgrade"), STR(PROTOCOL)};
  hv[kept++] = (struct http_header){STR("sec-websocket-key"), text};
  *n = kept;
  return 0;
}

static bool key_is_answered(struct str key, struct str answer)
{
  cleanup_buf struct buf text = BUF_INIT(256), wanted = BUF_INIT(64);
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  buf_adds(&text, key);
  buf_addz(&text, ACCEPTS);
  if (buf_failed(&text) || !EVP_Digest(text.p, text.n, digest, &n, EVP_sha1(), NULL))
    return false;
  base64_add(&wanted, digest, n, true);
  return str_eq(str_trim(answer), buf_str(&wanted));
}

int connect_answer(struct http_x *x, const struct http_header *headers, size_t n, struct http_header **out,
                   size_t *nout)
{
  struct http_head answer = {.headers = (struct http_header *)headers, .nheaders = n};
  if (!http_upgrade_taken(http_upgrade(&x->head, false), &answer) ||
      !key_is_answered(http_header(&x->head, "sec-websocket-key"), http_header(&answer, "sec-websocket-accept")))
    return -EPROTO;
  struct http_header *kept = arena_alloc(&x->arena, (n + 1) * sizeof(*kept));
  if (!kept)
    return -ENOBUFS;
  *nout = 0;
  for (size_t i = 0; i < n; i++)
    if (!is_handshake(headers[i].name))
      kept[(*nout)++] = headers[i];
  *out = kept;
  return 0;
}
