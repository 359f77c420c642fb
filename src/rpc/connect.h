/* SPDX-License-Identifier: Apache-2.0 */
/* connect.h - the Connect protocol, version 1, without any transport: envelopes, error bodies, header values. */
#ifndef CLOCHE_RPC_CONNECT_H
#define CLOCHE_RPC_CONNECT_H

#include "rpc/schema.h"

enum rpc_code {
  RPC_OK = 0,
  RPC_CANCELED,
  RPC_UNKNOWN,
  RPC_INVALID_ARGUMENT,
  RPC_DEADLINE_EXCEEDED,
  RPC_NOT_FOUND,
  RPC_ALREADY_EXISTS,
  RPC_PERMISSION_DENIED,
  RPC_RESOURCE_EXHAUSTED,
  RPC_FAILED_PRECONDITION,
  RPC_ABORTED,
  RPC_OUT_OF_RANGE,
  RPC_UNIMPLEMENTED,
  RPC_INTERNAL,
  RPC_UNAVAILABLE,
  RPC_DATA_LOSS,
  RPC_UNAUTHENTICATED,
};

enum rpc_codec { RPC_JSON, RPC_PROTO };

const char *rpc_code_name(enum rpc_code code);
int rpc_code_status(enum rpc_code code); /* HTTP status of a unary error */

/* {"code":"...","message":"..."} */
void rpc_error_body(struct buf *b, enum rpc_code code, struct str message);

void rpc_encode(enum rpc_codec codec, const struct schema *s, const void *msg, struct buf *b);
int rpc_decode(enum rpc_codec codec, const struct schema *s, struct str in, struct arena *a, void **out,
               struct err *err);

#define FRAME_HEAD       5
#define FRAME_COMPRESSED 0x01
#define FRAME_END        0x02
#define RPC_MESSAGE_MAX  ((size_t)96 << 20) /* one message: 64 MiB of input as base64, and what is around it */

/* A message frame, and the frame that ends a stream (code RPC_OK: `{}`). */
void frame_message(struct buf *b, enum rpc_codec codec, const struct schema *s, const void *msg);
void frame_end(struct buf *b, enum rpc_code code, struct str message);

/* The first frame of `in`: its whole length (head included) with *flags and *payload filled, 0 when more bytes are
 * needed, -EMSGSIZE when its payload is longer than RPC_MESSAGE_MAX. */
ssize_t frame_next(struct str in, uint8_t *flags, struct str *payload);

/* Content-Type of a request: the codec, or -EINVAL when it is none of ours for that kind of call. */
int rpc_content_type(struct str value, bool stream, enum rpc_codec *codec);
/* Connect-Timeout-Ms: 1 to 10 digits. */
int rpc_timeout_parse(struct str value, uint64_t *ms);

#endif
