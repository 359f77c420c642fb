/* SPDX-License-Identifier: Apache-2.0 */
/* connect.c - the bytes of the Connect protocol. No sockets here, so that every line can be tested and fuzzed alone. */
#include "rpc/connect.h"

static const struct {
  const char *name;
  int status;
} codes[] = {
    [RPC_OK] = {"ok", 200},
    [RPC_CANCELED] = {"canceled", 499},
    [RPC_UNKNOWN] = {"unknown", 500},
    [RPC_INVALID_ARGUMENT] = {"invalid_argument", 400},
    [RPC_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
    [RPC_NOT_FOUND] = {"not_found", 404},
    [RPC_ALREADY_EXISTS] = {"already_exists", 409},
    [RPC_PERMISSION_DENIED] = {"permission_denied", 403},
    [RPC_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
    [RPC_FAILED_PRECONDITION] = {"failed_precondition", 400},
    [RPC_ABORTED] = {"aborted", 409},
    [RPC_OUT_OF_RANGE] = {"out_of_range", 400},
    [RPC_UNIMPLEMENTED] = {"unimplemented", 501},
    [RPC_INTERNAL] = {"internal", 500},
    [RPC_UNAVAILABLE] = {"unavailable", 503},
    [RPC_DATA_LOSS] = {"data_loss", 500},
    [RPC_UNAUTHENTICATED] = {"unauthenticated", 401},
};

const char *rpc_code_name(enum rpc_code code)
{
  return codes[code].name;
}

int rpc_code_status(enum rpc_code code)
{
  return codes[code].status;
}

void rpc_error_body(struct buf *b, enum rpc_code code, struct str message)
{
  struct jw w = JW(b);
  jw_open(&w, '{');
  jw_key(&w, "code");
  jw_z(&w, rpc_code_name(code));
  jw_key(&w, "message");
  jw_str(&w, message);
  jw_close(&w, '}');
}

void rpc_encode(enum rpc_codec codec, const struct schema *s, const void *msg, struct buf *b)
{
  if (codec == RPC_JSON)
    json_encode(s, msg, b);
  else
    proto_encode(s, msg, b);
}

int rpc_decode(enum rpc_codec codec, const struct schema *s, struct str in, struct arena *a, void **out,
               struct err *err)
{
  return codec == RPC_JSON ? json_decode(s, in, a, out, err) : proto_decode(s, in, a, out, err);
}

static size_t frame_open(struct buf *b, uint8_t flags)
{
  char head[FRAME_HEAD] = {(char)flags};
  size_t at = b->n;
  buf_add(b, head, sizeof(head));
  return at;
}

static void frame_close(struct buf *b, size_t at)
{
  if (buf_failed(b))
    return;
  size_t n = b->n - at - FRAME_HEAD;
  for (int i = 0; i < 4; i++)
    b->p[at + 1 + (size_t)i] = (char)(n >> (24 - 8 * i));
}

void frame_message(struct buf *b, enum rpc_codec codec, const struct schema *s, const void *msg)
{
  size_t at = frame_open(b, 0);
  rpc_encode(codec, s, msg, b);
  frame_close(b, at);
}

void frame_end(struct buf *b, enum rpc_code code, struct str message)
{
  size_t at = frame_open(b, FRAME_END);
  if (code == RPC_OK) {
    buf_addz(b, "{}");
  } else {
    buf_addz(b, "{\"error\":");
    rpc_error_body(b, code, message);
    buf_addc(b, '}');
  }
  frame_close(b, at);
}

ssize_t frame_next(struct str in, uint8_t *flags, struct str *payload)
{
  if (in.n < FRAME_HEAD)
    return 0;
  const uint8_t *p = (const uint8_t *)in.p;
  size_t n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
  if (n > RPC_MESSAGE_MAX)
    return -EMSGSIZE;
  if (in.n - FRAME_HEAD < n)
    return 0;
  *flags = p[0];
  *payload = str_sub(in, FRAME_HEAD, n);
  return (ssize_t)(FRAME_HEAD + n);
}

int rpc_content_type(struct str value, bool stream, enum rpc_codec *codec)
{
  struct str type, params;
  str_cut(value, ';', &type, &params);
  type = str_trim(type);
  params = str_trim(params);
  bool json = str_ieq(type, stream ? STR("application/connect+json") : STR("application/json"));
  bool proto = str_ieq(type, stream ? STR("application/connect+proto") : STR("application/proto"));
  if (!json && !proto)
    return -EINVAL;
  if (params.n && !(json && str_ieq(params, STR("charset=utf-8"))))
    return -EINVAL;
  *codec = json ? RPC_JSON : RPC_PROTO;
  return 0;
}

int rpc_timeout_parse(struct str value, uint64_t *ms)
{
  if (value.n == 0 || value.n > 10)
    return -EINVAL;
  return str_u64(value, ms);
}
