/* SPDX-License-Identifier: Apache-2.0 */
/* jupyter_zmtp.c - greeting, handshake and frames of ZMTP 3.0; see jupyter_zmtp.h.
 *
 * A frame is: one byte of flags (more, long, command), its size in one byte or in eight, its bytes. */
#include "agent/interpreter/jupyter_zmtp.h"

#define GREETING_LEN 64
#define IN_KEEP      ((size_t)64 << 10)
#define COMMAND_MAX  4096 /* a handshake command is a few dozen bytes */

enum { FLAG_MORE = 1, FLAG_LONG = 2, FLAG_COMMAND = 4 };

void zmtp_init(struct zmtp *z, bool subscriber, const char *identity,
               void (*message)(void *arg, const struct str *frames, size_t n), void *arg)
{
  *z = (struct zmtp){.subscriber = subscriber, .message = message, .arg = arg};
  char greeting[GREETING_LEN] = {[0] = '\xff', [8] = 1, [9] = 0x7f, [10] = 3, [12] = 'N', 'U', 'L', 'L'};
  if (identity)
    (void)str_copyz(str_of(identity), z->identity, sizeof(z->identity));
  buf_init(&z->in, ZMTP_MESSAGE_MAX + GREETING_LEN + COMMAND_MAX);
  buf_init(&z->out, ZMTP_MESSAGE_MAX);
  buf_add(&z->out, greeting, sizeof(greeting));
}

void zmtp_free(struct zmtp *z)
{
  buf_free(&z->in);
  buf_free(&z->out);
}

static void put_size(struct buf *b, uint64_t n, int bytes)
{
  for (int i = bytes - 1; i >= 0; i--)
    buf_addc(b, (char)(n >> (8 * i)));
}

static void put_frame(struct buf *b, struct str body, int flags)
{
  bool big = body.n > 255;
  buf_addc(b, (char)(flags | (big ? FLAG_LONG : 0)));
  put_size(b, body.n, big ? 8 : 1);
  buf_adds(b, body);
}

static void put_property(struct buf *b, const char *name, const char *value)
{
  buf_addc(b, (char)strlen(name));
  buf_addz(b, name);
  put_size(b, strlen(value), 4);
  buf_addz(b, value);
}

static void send_ready(struct zmtp *z)
{
  struct buf cleanup_buf b = BUF_INIT(COMMAND_MAX);
  buf_addz(&b, "\x05"
               "READY");
  put_property(&b, "Socket-Type", z->subscriber ? "SUB" : "DEALER");
  if (!z->subscriber)
    put_property(&b, "Identity", z->identity);
  put_frame(&z->out, buf_str(&b), FLAG_COMMAND);
}

static int broken(struct zmtp *z)
{
  z->state = ZMTP_BROKEN;
  return -EPROTO;
}

/* The signature's inner bytes are free; the version and the mechanism are not. 1 when a greeting was taken. */
static int take_greeting(struct zmtp *z)
{
  static const char null_mechanism[20] = "NULL";
  if (z->in.n < GREETING_LEN)
    return 0;
  const char *p = z->in.p;
  if (p[0] != '\xff' || !(p[9] & 1) || (unsigned char)p[10] < 3 || memcmp(p + 12, null_mechanism, 20) != 0)
    return broken(z);
  buf_drop(&z->in, GREETING_LEN);
  z->state = ZMTP_HANDSHAKE;
  send_ready(z);
  return 1;
}

struct frame {
  int flags;
  size_t head, len;
};

/* The frame that begins at `at`: 1 when all of it is here, 0 when not, negative when it may never be. */
static int frame_at(const struct zmtp *z, size_t at, struct frame *f)
{
  struct str s = str_skip(buf_str(&z->in), at);
  if (s.n < 2)
    return 0;
  f->flags = (unsigned char)s.p[0];
  f->head = f->flags & FLAG_LONG ? 9 : 2;
  if (f->flags & ~(FLAG_MORE | FLAG_LONG | FLAG_COMMAND) || (f->flags & FLAG_COMMAND && f->flags & FLAG_MORE))
    return -EPROTO;
  if (s.n < f->head)
    return 0;
  uint64_t len = 0;
  for (size_t i = 1; i < f->head; i++)
    len = len << 8 | (unsigned char)s.p[i];
  if (len > ZMTP_MESSAGE_MAX || (f->flags & FLAG_COMMAND && len > COMMAND_MAX))
    return -EMSGSIZE;
  f->len = (size_t)len;
  return s.n - f->head >= f->len;
}

static bool is_command(struct str body, struct str name)
{
  return body.n > name.n && (unsigned char)body.p[0] == name.n && str_starts(str_skip(body, 1), name);
}

/* A command between messages. During the handshake it must be READY; later PING and SUBSCRIBE mean nothing to us. */
static int take_command(struct zmtp *z, struct str body)
{
  if (z->state != ZMTP_HANDSHAKE)
    return is_command(body, STR("ERROR")) ? broken(z) : 0;
  if (!is_command(body, STR("READY")))
    return broken(z);
  z->state = ZMTP_OPEN;
  if (z->subscriber)
    put_frame(&z->out, STR("\x01"), 0);
  return 0;
}

static void deliver(struct zmtp *z)
{
  struct str frames[ZMTP_FRAMES_MAX];
  size_t n = z->n;
  for (size_t i = 0; i < n; i++)
    frames[i] = str_make(z->in.p + z->at[i], z->len[i]);
  z->n = 0;
  z->message(z->arg, frames, n);
}

/* One whole frame at `parsed`. */
static int take_frame(struct zmtp *z, const struct frame *f)
{
  size_t body = z->parsed + f->head;
  if (f->flags & FLAG_COMMAND) {
    z->parsed = body + f->len;
    return z->n ? broken(z) : take_command(z, str_make(z->in.p + body, f->len));
  }
  if (z->state != ZMTP_OPEN || z->n == ZMTP_FRAMES_MAX)
    return broken(z);
  if (!z->n)
    z->start = z->parsed;
  z->at[z->n] = body;
  z->len[z->n++] = f->len;
  z->parsed = body + f->len;
  if (!(f->flags & FLAG_MORE))
    deliver(z);
  return 0;
}

/* What was delivered is not needed any more; the frames of an unfinished message move to the front. */
static void drop_told(struct zmtp *z)
{
  size_t keep = z->n ? z->start : z->parsed;
  buf_drop(&z->in, keep);
  z->parsed -= keep;
  z->start = 0;
  for (size_t i = 0; i < z->n; i++)
    z->at[i] -= keep;
  if (!z->in.n && z->in.cap > IN_KEEP)
    buf_free(&z->in);
}

int zmtp_feed(struct zmtp *z, struct str bytes)
{
  struct frame f;
  int rc = 1;
  if (z->state == ZMTP_BROKEN || buf_adds(&z->in, bytes) < 0)
    return broken(z);
  if (z->state == ZMTP_GREETING && (rc = take_greeting(z)) <= 0)
    return rc;
  while ((rc = frame_at(z, z->parsed, &f)) > 0)
    if (take_frame(z, &f) < 0)
      return -EPROTO;
  if (rc < 0)
    return broken(z);
  drop_told(z);
  return 0;
}

int zmtp_send(struct zmtp *z, const struct str *frames, size_t n)
{
  if (z->state != ZMTP_OPEN)
    return -ENOTCONN;
  for (size_t i = 0; i < n; i++)
    put_frame(&z->out, frames[i], i + 1 < n ? FLAG_MORE : 0);
  return buf_failed(&z->out);
}
