/* identity.c - see identity.h. The row's `init` is a JSON object that the gate wrote; it goes in as it is, with more members
 * behind its own. Of the answer only the status is read. */
#include "warden/identity.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define AGENT_PORT 49983
#define STATUS     12 /* bytes of "HTTP/1.1 204" */

static void put_member(struct buf *b, const char *name, const char *value)
{
  buf_addf(b, ",\"%s\":", name);
  json_put_str(b, str_of(value), true);
}

static void put_body(struct buf *b, const struct row_box *row)
{
  struct str init = str_trim(str_of(row->init));
  if (init.n < 2 || init.p[0] != '{' || init.p[init.n - 1] != '}')
    init = STR("{}");
  buf_adds(b, str_sub(init, 0, init.n - 1));
  buf_addz(b, init.n > 2 ? ",\"renew\":true" : "\"renew\":true");
  put_member(b, "sandboxID", row->id);
  put_member(b, "templateID", row->template_id);
  put_member(b, "buildID", row->build);
  put_member(b, "controlSecret", row->secret);
  buf_addc(b, '}');
}

static int wait_for(int fd, short events, int64_t until_us)
{
  struct pollfd p = {.fd = fd, .events = events};
  int64_t left = until_us - clock_mono_us();
  int k = poll(&p, 1, left > 0 ? (int)(left / 1000) + 1 : 0);
  return k > 0 || (k < 0 && errno == EINTR) ? 0 : k ? -errno : -ETIMEDOUT;
}

static int send_all(int fd, struct str text, int64_t until_us)
{
  while (text.n) {
    ssize_t n = send(fd, text.p, text.n, MSG_NOSIGNAL);
    if (n > 0)
      text = str_skip(text, (size_t)n);
    int r = n < 0 && errno != EAGAIN && errno != EINTR ? -errno : n < 0 ? wait_for(fd, POLLOUT, until_us) : 0;
    if (r)
      return r;
  }
  return 0;
}

static int read_status(int fd, char status[STATUS + 1], int64_t until_us)
{
  for (size_t have = 0; have < STATUS;) {
    ssize_t n = recv(fd, status + have, STATUS - have, 0);
    if (n == 0)
      return -ECONNRESET;
    have += n > 0 ? (size_t)n : 0;
    int r = n < 0 && errno != EAGAIN && errno != EINTR ? -errno : n < 0 ? wait_for(fd, POLLIN, until_us) : 0;
    if (r)
      return r;
  }
  status[STATUS] = 0;
  return 0;
}

int identity_tell(const struct jail *j, const char *was, const struct row_box *row, struct err *err)
{
  int64_t until_us = clock_mono_us() + IDENTITY_MS * 1000;
  cleanup_buf struct buf body = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);
  char status[STATUS + 1] = "";
  put_body(&body, row);
  buf_addf(&text, "POST /init HTTP/1.1\r\nHost: agent\r\nConnection: close\r\nX-Cloche-Control: %s\r\nContent-Type: application/json\r\n", was);
  buf_addf(&text, "Content-Length: %zu\r\n\r\n", body.n);
  buf_adds(&text, buf_str(&body));
  if (buf_failed(&body) || buf_failed(&text))
    return err_set(err, -E2BIG, "the settings of the sandbox are too large for its agent");
  cleanup_fd int fd = jail_door(j, AGENT_PORT, true, err);
  if (fd < 0)
    return fd;
  int r = send_all(fd, buf_str(&text), until_us);
  r = r ? r : read_status(fd, status, until_us);
  if (r)
    return err_set(err, r, "the agent of the restored sandbox does not answer: %s", strerrordesc_np(-r));
  return !strcmp(status + STATUS - 3, "204") ? 0 : err_set(err, -EIO, "the agent of the restored sandbox refused its identity: %s", status);
}
