/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - what the parts of this folder share: a session, a call of it, and the sandbox that a tool works in. */
#ifndef CLOCHE_MCP_SESSION_H
#define CLOCHE_MCP_SESSION_H

#include "mcp/mcp.h"
#include "mcp/result.h"
#include <cloche.h>

#define MCP_HANDLES_MAX 32 /* sandboxes beside its own that a session keeps connections to */

typedef void (*mcp_step)(struct mcp_call *c);

struct mcp_box {
  struct cloche_box *handle;
  int64_t renewed_us; /* its end was put off then */
};

struct mcp_session {
  uv_loop_t *loop;
  struct cloche *client;
  uv_poll_t poll;
  uv_timer_t timer;
  char *id, *name, *template_id;
  struct mcp_options options;
  struct mcp_box *box; /* its own sandbox; NULL: none yet, or it has ended */
  struct map boxes;    /* id -> struct mcp_box *: its own too */
  struct cloche_op *finding;
  struct cloche_box_list *found;
  struct cloche_box *arriving;
  VEC(struct mcp_call *) calls;
  VEC(struct mcp_call *) waiting; /* for its own sandbox */
  unsigned made;                  /* sandboxes of this session */
  bool looked;                    /* for a sandbox of its name */
  bool ending;
  unsigned closing; /* handles of libuv that are not closed yet */
  void (*ended)(void *arg);
  void *ended_arg;
};

struct mcp_tool;

struct mcp_call {
  struct mcp_session *session;
  struct arena arena; /* the message as it was read, and what the call makes of it */
  struct str id;      /* JSON */
  struct json *params, *arguments;
  struct str progress_token; /* JSON; empty: nobody asked */
  uint64_t progress;
  int64_t told_us;
  struct buf unsaid;
  mcp_message_fn fn; /* NULL: the client has left */
  void *arg;
  const struct mcp_tool *tool;
  struct cloche_op *op;
  mcp_step next;
  mcp_step then;          /* with the sandbox that is being connected to */
  struct mcp_call **slot; /* the caller's, NULL from the last message on */
  struct mcp_box *box;
  char *box_id;                /* of `box`, which may be gone when an error is told */
  struct cloche_box *arriving; /* being connected to */
  struct cloche_recipe *recipe;
  void *result; /* of libcloche, freed with the call */
  int64_t number;
  bool flag;
  struct mcp_result out;
  bool answered;
};

/* Begins a step that asks the server: `c->op` is for the cloche_call of one function of libcloche, whose success leads
 * to `next` and whose failure to the call's answer. */
struct cloche_call call_begin(struct mcp_call *c, mcp_step next);
/* As call_begin; the deadline is in seconds. */
struct cloche_call call_begin_for(struct mcp_call *c, mcp_step next, unsigned seconds);
/* What the function returned: one that could not begin is answered. The call may be gone after it. */
void call_go(struct mcp_call *c, enum cloche_code code, struct cloche_error *error);
/* Goes on with `next` when c->box is the sandbox that the argument `sandbox` names, or the session's own. */
void call_with_box(struct mcp_call *c, mcp_step next);
void call_answer(struct mcp_call *c, struct str result); /* the response's result, JSON */
void call_refuse(struct mcp_call *c, int code, const char *fmt, ...) PRINTF_LIKE(3, 4); /* an error of JSON-RPC */
void call_tool_done(struct mcp_call *c);                                                /* answers with c->out */
void call_tool_failed(struct mcp_call *c, const char *fmt, ...) PRINTF_LIKE(2, 3);      /* a result that is an error */
void call_progress(struct mcp_call *c, struct str text); /* output so far, where it was asked for */

/* Arguments of a tool. Each answers itself and returns false where the value is not right. */
bool arg_text(struct mcp_call *c, const char *name, bool required, const char **out); /* NULL when absent */
bool arg_int(struct mcp_call *c, const char *name, int64_t least, int64_t most, int64_t otherwise, int64_t *out);
bool arg_bool(struct mcp_call *c, const char *name, bool otherwise, bool *out);
bool arg_pairs(struct mcp_call *c, const char *name, struct cloche_pair **out, size_t *n);

/* The session's sandboxes. */
struct mcp_box *session_keep_box(struct mcp_session *s, struct cloche_box *handle);
void session_drop_box(struct mcp_session *s, const char *id);
void session_use_box(struct mcp_session *s, struct mcp_box *box);
void session_kick(struct mcp_session *s); /* after a call of libcloche: its timer may be another */

/* Metadata by which a session's own sandbox is found again: at most two pairs. How many were written. */
size_t session_marks(const struct mcp_session *s, struct cloche_pair *out);

/* methods.c */
void method_call(struct mcp_call *c, struct str method);

struct mcp_tool {
  const char *name, *title, *description;
  mcp_step run;
  bool reads; /* changes nothing */
};
const struct mcp_tool *mcp_tool_find(struct str name);
void mcp_tools_add(struct jw *w); /* the array for tools/list */

void tool_run_code(struct mcp_call *c);
void tool_run_command(struct mcp_call *c);
void tool_read_file(struct mcp_call *c);
void tool_write_file(struct mcp_call *c);
void tool_list_files(struct mcp_call *c);
void tool_create(struct mcp_call *c);
void tool_list(struct mcp_call *c);
void tool_pause(struct mcp_call *c);
void tool_resume(struct mcp_call *c);
void tool_fork(struct mcp_call *c);
void tool_kill(struct mcp_call *c);
void tool_build_template(struct mcp_call *c);

/* tool_files.c: resources are files of sandboxes. */
void resource_list(struct mcp_call *c);
void resource_read(struct mcp_call *c);

#endif
