/* SPDX-License-Identifier: Apache-2.0 */
/* store_role.c - see store_role.h: the loop, the supervisor's words and the warden's requests. */
#include "store/store_role.h"

#include "store/postgres_connect.h"
#include "store/store_rights.h"
#include "store/store_worker.h"
#include "wire/control.h"
#include "wire/ipc.h"
#include "wire/wire.h"
#include <malloc.h>
#include <stdio.h>
#include <sys/prctl.h>

#define STOP_MS     2000
#define CA_SYSTEM   "/etc/ssl/certs/ca-certificates.crt"
#define CA_MAX      ((size_t)256 << 10)
#define SOCKET_ROOT "/socket" /* in our root: the directory of PostgreSQL's socket */

struct store_role {
  uv_loop_t *loop;
  struct ipc *control, *warden; /* warden NULL: there is none now */
  struct store_worker *worker;
  unsigned uid;
  char *url;           /* as it is connected to, in our root */
  struct buf ca;       /* what STORE_CA_FILE holds */
  char *socket_folder; /* on the host; NULL: reached over the network */
};

/* ---- the warden ---- */

static void answer(void *arg, uint64_t serial, struct str packet)
{
  struct store_role *s = arg;
  if (s->warden && ipc_serial(s->warden) == serial && ipc_send(s->warden, packet, -1))
    log_error("an answer of %zu bytes did not reach the warden", packet.n);
}

static void refuse(struct store_role *s, uint64_t id)
{
  cleanup_buf struct buf b = BUF_INIT(512);
  wire_begin(&b, WIRE_REPLY, id, -EBUSY);
  wire_putz(&b, W_MESSAGE, "the store has too much to do; try again");
  ipc_send(s->warden, buf_str(&b), -1);
}

static void warden_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct store_role *s = arg;
  if (fd >= 0)
    close(fd);
  if (wire_check(packet))
    log_error("malformed packet of %zu bytes from the warden", packet.n);
  else if (store_worker_add(s->worker, ipc_serial(l), packet))
    refuse(s, wire_head(packet)->id);
}

static void warden_closed(struct ipc *l, void *arg)
{
  struct store_role *s = arg;
  if (s->warden == l)
    s->warden = NULL;
  ipc_free(l);
}

static const struct ipc_ops warden_ops = {warden_packet, warden_closed};

/* ---- the supervisor ---- */

static void control_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct store_role *s = arg;
  if (packet.p[0] == CONTROL_LINK && fd >= 0) {
    if (s->warden)
      ipc_free(s->warden);
    s->warden = ipc_new(s->loop, fd, &warden_ops, s);
  } else if (fd >= 0) {
    close(fd);
  }
  if (packet.p[0] == CONTROL_STOP)
    uv_stop(s->loop);
}

static void control_closed(struct ipc *l, void *arg)
{
  struct store_role *s = arg;
  uv_stop(s->loop);
}

static const struct ipc_ops control_ops = {control_packet, control_closed};

/* ---- start ---- */

static int read_description(struct store_role *s, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct str text, line, name, value, url = STR_NONE;
  uint64_t uid = 0;
  enum log_level level = LOG_INFO;
  char word[16] = "";
  if (lseek(CONTROL_SETTINGS_FD, 0, SEEK_SET) || fd_read_all(CONTROL_SETTINGS_FD, &b))
    return err_set(err, -EIO, "cloche-store role is started by cloche serve, not by hand");
  close(CONTROL_SETTINGS_FD);
  for (text = buf_str(&b); text.n;) {
    str_cut(text, '\n', &line, &text);
    str_cut(line, ' ', &name, &value);
    if (str_is(name, "uid") && str_u64(value, &uid))
      return err_set(err, -EINVAL, "the supervisor named no user id");
    if (str_is(name, "level") && !str_copyz(value, word, sizeof(word)) && !log_level_parse(word, &level))
      log_level_set(level);
    if (str_is(name, "url"))
      url = str_trim(value);
  }
  s->uid = (unsigned)uid;
  s->url = xstrndup(url.p, url.n);
  explicit_bzero(b.p, b.n);
  return postgres_url(s->url) ? 0
                              : err_set(err, -EINVAL, "the store's URL must begin with postgres:// or postgresql://");
}

/* Paths of the host become those of our root. */
static void move_in(struct store_role *s, const char *option, const char *path)
{
  char *url = xasprintf("%s%c%s=%s", s->url, strchr(s->url, '?') ? '&' : '?', option, path);
  explicit_bzero(s->url, strlen(s->url));
  free(s->url);
  s->url = url;
}

static void take_ca(struct store_role *s, const char *named)
{
  const char *path = named ? named : CA_SYSTEM;
  s->ca = BUF_INIT(CA_MAX);
  if (named && !strcmp(named, "system"))
    path = CA_SYSTEM;
  if (file_read(path, &s->ca))
    buf_clear(&s->ca);
  if (named && !s->ca.n)
    log_warn("sslrootcert %s can't be read, or is longer than 256 KiB; certificates of PostgreSQL won't verify", named);
  store_files[ARRAY_LEN(store_files) - 1].text = s->ca.n ? buf_z(&s->ca) : "";
  move_in(s, "sslrootcert", STORE_CA_FILE);
}

/* What the URL names on the host is looked at before the root is left. */
static int look_around(struct store_role *s, struct err *err)
{
  char host[256], ca[512];
  if (postgres_option(s->url, "host", host, sizeof(host)) || postgres_option(s->url, "sslrootcert", ca, sizeof(ca)))
    return err_set(err, -EINVAL, "this is no URL of PostgreSQL: expected postgres://USER:PASSWORD@HOST:PORT/DATABASE");
  if (!host[0] || host[0] == '/') {
    s->socket_folder = xstrdup(host[0] ? host : "/run/postgresql");
    store_rights.folder = s->socket_folder;
    store_rights.folder_at = SOCKET_ROOT;
    if (s->uid)
      move_in(s, "host", SOCKET_ROOT);
    return 0;
  }
  if (s->uid)
    take_ca(s, ca[0] ? ca : NULL);
  return 0;
}

int store_role_main(void)
{
  static uv_loop_t loop;
  static struct store_role s; /* to the process's end */
  struct err err = ERR_NONE;
  prctl(PR_SET_NAME, "cloche-store");
  log_open("store", 2);
  proc_hide();
  clearenv();
  setenv("RES_OPTIONS", "timeout:2 attempts:2", 1);
  mallopt(M_ARENA_MAX, 2);
  int r = confine_no_rings(&err);
  uv_loop_init(&loop);
  s.loop = &loop;
  s.control = ipc_new(&loop, CONTROL_FD, &control_ops, &s);
  r = r ? r : read_description(&s, &err);
  r = r ? r : look_around(&s, &err);
  r = r ? r : confine_rights(&store_rights, s.uid, &err);
  if (!r)
    s.worker = store_worker_new(&loop, s.url, answer, &s);
  r = r ? r : store_worker_start(s.worker, &err);
  if (r || confine_filter(&store_rights, s.uid, &err))
    return control_failed(s.control, &err);
  ipc_send(s.control, (struct str){(char[]){CONTROL_READY}, 1}, -1);
  uv_run(&loop, UV_RUN_DEFAULT);
  store_worker_stop(s.worker, STOP_MS);
  return 0;
}
