/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - see identity.h. The row's `init` is a JSON object that the gate wrote; it goes in as it is, with more
 * members behind its own. Of the answer only the status is read. */
#include "warden/core/identity.h"

#include "warden/core/agent_reply.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define AGENT_PORT 49983

static void put_member(struct buf *b, const char *name, const char *value)
{
  buf_addf(b, ",\"%s\":", name);
  json_put_str(b, str_of(value), true);
}

static void put_authority(struct buf *b, const char *before, struct str authority)
{
  if (!authority.n)
    return;
  buf_addz(b, before);
  json_put_str(b, authority, true);
}

/* Without a row: nothing but the authority. */
static void put_body(struct buf *b, const struct row_box *row, struct str authority)
{
  if (!row) {
    put_authority(b, "{\"authority\":", authority);
    buf_addc(b, '}');
    return;
  }
  struct str init = str_trim(str_of(row->init));
  if (init.n < 2 || init.p[0] != '{' || init.p[init.n - 1] != '}')
    init = STR("{}");
  buf_adds(b, str_sub(init, 0, init.n - 1));
  buf_addz(b, init.n > 2 ? ",\"renew\":true" : "\"renew\":true");
  put_member(b, "sandboxID", row->id);
  put_member(b, "templateID", row->template_id);
  put_member(b, "buildID", row->build);
  put_member(b, "controlSecret", row->secret);
  put_authority(b, ",\"authority\":", authority);
  buf_addc(b, '}');
}

static int put_request(struct buf *text, const char *was, const struct row_box *row, struct str authority,
                       struct err *err)
{
  cleanup_buf struct buf body = BUF_INIT(1 << 20);
  put_body(&body, row, authority);
  buf_addf(text,
           "POST /init HTTP/1.1\r\nHost: agent\r\nConnection: close\r\nX-Cloche-Control: %s\r\nContent-Type: "
           "application/json\r\n",
           was);
  buf_addf(text, "Content-Length: %zu\r\n\r\n", body.n);
  buf_adds(text, buf_str(&body));
  return buf_failed(&body) || buf_failed(text)
             ? err_set(err, -E2BIG, "the settings of the sandbox are too large for its agent")
             : 0;
}

/* ---- one conversation ---- */

struct talk {
  int fd;
  struct buf text;
  size_t sent, have;
  char status[AGENT_STATUS_LEN];
};

/* `was` NULL: nothing but a question whether it is there. */
static int talk_open(struct talk *t, const struct jail *j, const char *was, const struct row_box *row,
                     struct str authority, struct err *err)
{
  *t = (struct talk){.fd = -1, .text = BUF_INIT(1 << 20)};
  int r = was ? put_request(&t->text, was, row, authority, err) : 0;
  if (r)
    return r;
  if (!was)
    buf_addz(&t->text, "GET /health HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n");
  t->fd = jail_connect(j, AGENT_PORT, false, err);
  return MIN(t->fd, 0);
}

static void talk_close(struct talk *t)
{
  if (t->fd >= 0)
    close(steal_fd(&t->fd));
  buf_free(&t->text);
}

/* As far as it goes without waiting: 0 when it is over, the events to wait for, or negative. */
static int talk_on(struct talk *t)
{
  while (t->sent < t->text.n) {
    ssize_t n = send(t->fd, t->text.p + t->sent, t->text.n - t->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EINTR)
      return errno == EAGAIN || errno == ENOTCONN ? POLLOUT : -errno; /* ENOTCONN, EAGAIN: it is still connecting */
    t->sent += n > 0 ? (size_t)n : 0;
  }
  while (t->have < AGENT_STATUS_LEN) {
    ssize_t n = recv(t->fd, t->status + t->have, AGENT_STATUS_LEN - t->have, MSG_DONTWAIT);
    if (n == 0)
      return -ECONNRESET;
    if (n < 0 && errno != EINTR)
      return errno == EAGAIN ? POLLIN : -errno;
    t->have += n > 0 ? (size_t)n : 0;
  }
  return 0;
}

static int talk_result(const struct talk *t, int r, unsigned seconds, struct err *err)
{
  if (r == -ETIMEDOUT)
    return err_set(err, r, "the agent of the restored sandbox did not answer within %u s (setting agent_seconds)",
                   seconds);
  if (r)
    return err_set(err, r, "the agent of the restored sandbox does not answer: %s", strerrordesc_np(-r));
  return agent_reply_status(str_make(t->status, t->have), err);
}

static int health_result(const struct talk *t, int r, unsigned seconds, struct err *err)
{
  if (r == -ETIMEDOUT)
    return err_set(err, -ESHUTDOWN, "the sandbox's agent did not answer within %u s (setting health_seconds)", seconds);
  if (r)
    return err_set(err, -ESHUTDOWN, "the sandbox's agent does not answer: %s", strerrordesc_np(-r));
  return agent_reply_status(str_make(t->status, t->have), NULL)
             ? err_set(err, -ESHUTDOWN, "the sandbox's agent does not report that it is healthy")
             : 0;
}

/* ---- on a thread ---- */

static int wait_for(int fd, int events, int64_t until_us)
{
  struct pollfd p = {.fd = fd, .events = (short)events};
  int64_t left = until_us - clock_mono_us();
  int k = poll(&p, 1, left > 0 ? (int)(left / 1000) + 1 : 0);
  return k > 0 || (k < 0 && errno == EINTR) ? 0 : k ? -errno : -ETIMEDOUT;
}

int identity_tell(const struct jail *j, const char *was, const struct row_box *row, unsigned seconds, struct err *err)
{
  struct talk t;
  int64_t until_us = clock_mono_us() + (int64_t)seconds * 1000000;
  int r = talk_open(&t, j, was, row, STR_NONE, err);
  if (r) {
    talk_close(&t);
    return r;
  }
  while ((r = talk_on(&t)) > 0 && !(r = wait_for(t.fd, r, until_us)))
    ;
  r = talk_result(&t, r, seconds, err);
  talk_close(&t);
  return r;
}

/* ---- on the loop ---- */

struct identity {
  uv_poll_t poll;
  uv_timer_t timer;
  struct talk talk;
  unsigned seconds, open; /* handles */
  bool health;            /* a question whether it is there, no identity */
  identity_fn *done;
  void *arg;
  int result;
  struct err err;
};

static void handle_closed(uv_handle_t *h)
{
  struct identity *d = h->data;
  if (--d->open == 0)
    free(d);
}

static void finish(struct identity *d, int r)
{
  struct err err = d->err;
  if (d->health)
    r = health_result(&d->talk, d->result ? d->result : r, d->seconds, &err);
  else
    r = d->result ? d->result : talk_result(&d->talk, r, d->seconds, &err);
  if (d->talk.fd >= 0) {
    uv_poll_stop(&d->poll);
    uv_close((uv_handle_t *)&d->poll, handle_closed);
  }
  uv_close((uv_handle_t *)&d->timer, handle_closed);
  talk_close(&d->talk);
  d->done(d->arg, r, &err);
}

static void answered(uv_poll_t *poll, int status, int events);

static void go_on(struct identity *d, bool hung_up)
{
  int r = talk_on(&d->talk);
  if (r <= 0)
    finish(d, r);
  else if (r == POLLOUT && hung_up) /* it says nothing more and does not read: the event would come again at once */
    finish(d, -ECONNRESET);
  else
    uv_poll_start(&d->poll, (r == POLLOUT ? UV_WRITABLE : UV_READABLE) | UV_DISCONNECT, answered);
}

static void answered(uv_poll_t *poll, int status, int events)
{
  go_on(poll->data, events & UV_DISCONNECT);
}

/* Also the first look, from the loop itself: who asked has returned by then. */
static void rang(uv_timer_t *timer)
{
  struct identity *d = timer->data;
  if (d->result) {
    finish(d, d->result);
    return;
  }
  if (!uv_is_active((uv_handle_t *)&d->poll)) {
    uv_timer_start(timer, rang, d->seconds * 1000ull, 0);
    go_on(d, false);
    return;
  }
  finish(d, -ETIMEDOUT);
}

void agent_health(uv_loop_t *loop, const struct jail *j, unsigned seconds, identity_fn *done, void *arg)
{
  identity_begin(loop, j, NULL, NULL, STR_NONE, seconds, done, arg);
}

void agent_trust(uv_loop_t *loop, const struct jail *j, const char *secret, struct str authority, unsigned seconds,
                 identity_fn *done, void *arg)
{
  identity_begin(loop, j, secret, NULL, authority, seconds, done, arg);
}

void identity_begin(uv_loop_t *loop, const struct jail *j, const char *was, const struct row_box *row,
                    struct str authority, unsigned seconds, identity_fn *done, void *arg)
{
  struct identity *d = xcalloc(1, sizeof(*d));
  d->seconds = seconds;
  d->health = !was;
  d->done = done;
  d->arg = arg;
  d->poll.data = d->timer.data = d;
  d->result = talk_open(&d->talk, j, was, row, authority, &d->err);
  if (d->talk.fd >= 0)
    uv_poll_init(loop, &d->poll, d->talk.fd);
  uv_timer_init(loop, &d->timer);
  d->open = d->talk.fd >= 0 ? 2 : 1;
  uv_timer_start(&d->timer, rang, 0, 0);
}
