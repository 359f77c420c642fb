/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_message.h - one line of the native kernel protocol taken apart, and the lines sent to kernels put together. */
#ifndef CLOCHE_AGENT_INTERPRETER_KERNEL_MESSAGE_H
#define CLOCHE_AGENT_INTERPRETER_KERNEL_MESSAGE_H

#include "agent/env.h"
#include "base/base.h"

/* Values are checked JSON tokens in the line's own bytes; absent ones have no bytes. */
struct message {
  struct str ev, id, name, text, main, data, value, traceback, n, status, ok, reason, pid, interrupt, coalesce, nursery;
  struct str out, err; /* "stdout" and "stderr": numbers of a drain */
};

int message_read(struct str line, struct message *m); /* 0, or -EINVAL when it is no JSON object */
bool message_is(const struct message *m, const char *ev);
int message_text(struct str raw, char *out, size_t size); /* a string value, decoded and cut to size */

/* Lines for the kernel, LF included. */
void message_run(struct buf *b, uint64_t id, struct str code, const struct json *env);
void message_env(struct buf *b, const struct env *env, bool renew);
void message_cd(struct buf *b, const char *path);
void message_interrupt(struct buf *b, uint64_t id);
void message_renew(struct buf *b);
void message_fork(struct buf *b, uint64_t id);

#endif
