/* SPDX-License-Identifier: Apache-2.0 */
/* process_input.c - bytes into a process. What the pipe takes at once is written at once; the rest is queued in order
 * and its caller answered when the last byte is in. */
#include "agent/envd/process.h"
#include "agent/envd/process_internal.h"

static struct channel *input_channel(struct process *p)
{
  return p->pty ? &p->out : &p->in;
}

static void input_done(struct rpc_call *c, bool more)
{
  static const struct msg_empty empty;
  if (more)
    rpc_more(c);
  else
    rpc_reply(c, &empty);
}

/* Bytes taken (all, or what fits now), or -errno. */
static ssize_t input_write(struct process *p, const char *bytes, size_t n)
{
  size_t done = 0;
  while (done < n) {
    ssize_t wrote = write(input_channel(p)->fd, bytes + done, n - done);
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote < 0)
      return errno == EAGAIN ? (ssize_t)done : -errno;
    done += (size_t)wrote;
  }
  return (ssize_t)done;
}

static struct input_chunk *queue_take(struct process *p)
{
  struct input_chunk *chunk = p->queue;
  p->queue = chunk->next;
  if (!p->queue)
    p->queue_end = NULL;
  return chunk;
}

static void queue_add(struct process *p, struct str rest, struct rpc_call *c, bool more)
{
  struct input_chunk *chunk = malloc(sizeof(*chunk) + rest.n);
  if (!chunk) {
    rpc_fail(c, RPC_RESOURCE_EXHAUSTED, "not enough memory for %zu bytes of input", rest.n);
    return;
  }
  *chunk = (struct input_chunk){.call = c, .more = more, .n = rest.n};
  memcpy(chunk->bytes, rest.p, rest.n);
  rpc_hold(c);
  if (more)
    rpc_wait(c);
  *(p->queue ? p->queue_end : &p->queue) = chunk;
  p->queue_end = &chunk->next;
}

static const char *input_word(const struct process *p)
{
  return p->pty ? "pty" : "stdin";
}

void input_fail(struct process *p, const char *why)
{
  while (p->queue) {
    struct input_chunk *chunk = queue_take(p);
    rpc_fail(chunk->call, RPC_INTERNAL, "error writing to %s: %s", input_word(p), why);
    rpc_release(chunk->call);
    free(chunk);
  }
}

void input_flush(struct process *p)
{
  while (p->queue && input_channel(p)->fd >= 0) {
    struct input_chunk *chunk = p->queue;
    ssize_t n = input_write(p, chunk->bytes + chunk->off, chunk->n - chunk->off);
    if (n < 0) {
      input_fail(p, strerror((int)-n));
      break;
    }
    chunk->off += (size_t)n;
    if (chunk->off < chunk->n)
      return;
    queue_take(p);
    input_done(chunk->call, chunk->more);
    rpc_release(chunk->call);
    free(chunk);
  }
  if (p->stdin_closing && !p->queue)
    channel_close(&p->in);
}

static void input_put(struct process *p, struct str bytes, struct rpc_call *c, bool more)
{
  ssize_t n = p->queue ? 0 : input_write(p, bytes.p, bytes.n);
  if (n < 0) {
    rpc_fail(c, RPC_INTERNAL, "error writing to %s: %s", input_word(p), strerror((int)-n));
    return;
  }
  if ((size_t)n == bytes.n && !p->queue) {
    if (!more)
      input_done(c, more);
    return;
  }
  queue_add(p, str_skip(bytes, (size_t)n), c, more);
  process_poll(p);
}

void process_input(struct process *p, const struct msg_input *in, struct rpc_call *c, bool more)
{
  if (!in || !in->which)
    rpc_fail(c, RPC_UNIMPLEMENTED, "invalid input type");
  else if (in->which == INPUT_PTY && !p->pty)
    rpc_fail(c, RPC_INTERNAL, "error writing to pty: pty not assigned to process");
  else if (in->which == INPUT_STDIN && p->pty)
    rpc_fail(c, RPC_INTERNAL, "error writing to stdin: process has a pty assigned");
  else if (input_channel(p)->fd < 0 || p->stdin_closing)
    rpc_fail(c, RPC_INTERNAL, "error writing to %s: stdin not enabled or closed", input_word(p));
  else
    input_put(p, p->pty ? in->pty : in->in, c, more);
}

void process_close_stdin(struct process *p, struct rpc_call *c)
{
  static const struct msg_empty empty;
  if (p->pty) {
    rpc_fail(c, RPC_UNKNOWN, "error closing stdin: tty doesn't support closing stdin, send 0x04 instead");
    return;
  }
  p->stdin_closing = true;
  if (!p->queue)
    channel_close(&p->in);
  rpc_reply(c, &empty);
}
