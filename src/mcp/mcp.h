/* SPDX-License-Identifier: Apache-2.0 */
/* mcp.h - start here: sandboxes as tools of the Model Context Protocol.
 *
 * A session takes JSON-RPC messages and gives messages back, whatever carries them: lines on standard input and output
 * (lines.c, `cloche mcp`) or HTTP requests that a gate passes on (server.c, the role `mcp`). It acts through libcloche
 * with the caller's own API key, so it can do exactly what that key can do, and holds no other right. A session has one
 * sandbox, made when a tool first needs it, found again by the session's name, and ended or paused with the session.
 *
 * The room promises: every request gets one response, also when the sandbox ends, the server is killed or the client
 * cancels; what one call keeps is bounded (struct mcp_limits); text from a sandbox goes into JSON strings and nowhere
 * else. Everything runs on one libuv loop; no call here blocks.
 *
 * Below: session.h (sessions, calls and their sandbox), methods.c (which method means what), tools.c (the table of
 * tools), tool_*.c (what they do), result.h (how results are written). */
#ifndef CLOCHE_MCP_MCP_H
#define CLOCHE_MCP_MCP_H

#include "base/base.h"
#include <uv.h>

struct cloche_config;
struct mcp_session;
struct mcp_call;

struct mcp_limits {
  unsigned boxes;     /* sandboxes that one session may make */
  unsigned calls;     /* calls of one session at once */
  size_t text_max;    /* bytes of each text in a result; what is longer loses its middle */
  size_t result_max;  /* bytes of images and files in a result; some clients read at most 1 MiB in a message */
  unsigned timeout_s; /* longest run of one call */
};
extern const struct mcp_limits mcp_limits_default;

enum mcp_end { MCP_END_DEFAULT, MCP_END_KILL, MCP_END_PAUSE };

struct mcp_options {
  struct str id;          /* of the session, unguessable; its sandbox is found by it after a restart of this process */
  struct str name;        /* given by the client: a session of that name finds its sandbox again; may be empty */
  struct str template_id; /* empty: the server's default */
  enum mcp_end end;       /* default: a named session's sandbox is paused, another's killed */
  unsigned idle_s;        /* how long the sandbox waits for the next call */
  bool resumed;           /* the session was there before this process: look for its sandbox first */
  struct mcp_limits limits;
};

/* Of a request: notifications that belong to it, then its response, which is the last; an empty one where the client
 * cancelled it. Also from inside mcp_session_take. */
typedef void (*mcp_message_fn)(struct str message, bool last, void *arg);

/* NULL with err filled when the client can't be made. */
struct mcp_session *mcp_session_new(uv_loop_t *loop, const struct cloche_config *config,
                                    const struct mcp_options *options, struct err *err);
/* Takes one message. A request: *call, which must stay where it is, is the call until its last message and NULL from
 * then on; `call` may be NULL. Others: *call is NULL. Negative with *code (of
 * JSON-RPC) and err filled: the text is no message, and nothing else happens. */
int mcp_session_take(struct mcp_session *s, struct str text, mcp_message_fn fn, void *arg, struct mcp_call **call,
                     int *code, struct err *err);
/* The client does not wait any longer: what runs is interrupted, and fn is not called again. */
void mcp_call_leave(struct mcp_call *call);
size_t mcp_session_calls(const struct mcp_session *s);
/* Ends all calls and the sandbox as the options say; `ended` (may be NULL) is called once, and the session is gone. */
void mcp_session_end(struct mcp_session *s, void (*ended)(void *arg), void *arg);
/* Ends all calls and leaves the sandbox to its timeout. */
void mcp_session_leave(struct mcp_session *s, void (*ended)(void *arg), void *arg);

/* {"jsonrpc":"2.0","id":ID,"error":{...}}; an empty id is null. */
void mcp_error_add(struct buf *b, struct str id, int code, const char *message);

enum { MCP_PARSE_ERROR = -32700, MCP_INVALID_REQUEST = -32600, MCP_NO_METHOD = -32601, MCP_INVALID_PARAMS = -32602 };

#endif
