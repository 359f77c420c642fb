/* SPDX-License-Identifier: Apache-2.0 */
/* tls_listener.c - see tls_listener.h.
 *
 * Gates live in an empty root under an unprivileged user, so the private key comes to them as sealed memory. The files
 * are looked at again when the supervisor hears SIGHUP and every few seconds by their times; what can't be used (a key
 * that does not fit the certificate yet, half a copy) is logged once and the old one stays. All gates get the same
 * ticket keys, so that a client may resume at any of them; the keys change with the certificate and twice a day. */
#include "cli/tls_listener.h"

#include "cli/listener.h"
#include "net/tls.h"
#include "wire/control.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>

#define LOOK_US    2000000
#define TICKETS_US (12ll * 3600 * 1000000)
#define FILE_MAX   ((size_t)1 << 20)

static void wipe(struct buf *b)
{
  if (b->p)
    explicit_bzero(b->p, b->cap);
  buf_free(b);
}
#define cleanup_secret __attribute__((cleanup(wipe)))

static int read_pem(const char *path, struct buf *out, struct err *err)
{
  int r = file_read(path, out);
  return r ? err_set(err, r, "%s: %s%s", path, strerrordesc_np(-r), r == -ENOENT ? "; 'cloche tls init' makes one" : "")
           : 0;
}

/* Descriptors for all to read and nobody to change. */
static int seal(struct str bytes, struct err *err)
{
  cleanup_fd int fd = memfd_create("cloche-certificate", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    return err_errno(err, "memory for the certificate");
  int r = fd_write_all(fd, bytes.p, bytes.n);
  if (r || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
    return err_set(err, r ? r : -errno, "memory for the certificate can't be written");
  return steal_fd(&fd);
}

static int load(struct tls_listener *s, struct err *err)
{
  cleanup_buf struct buf cert = BUF_INIT(FILE_MAX);
  cleanup_secret struct buf key = BUF_INIT(FILE_MAX), all = BUF_INIT(4 * FILE_MAX);
  char tickets[TLS_TICKET_KEYS];
  int r = read_pem(s->cert, &cert, err);
  r = r ? r : read_pem(s->key, &key, err);
  if (r)
    return r;
  if (getrandom(tickets, sizeof(tickets), 0) != (ssize_t)sizeof(tickets))
    return err_errno(err, "ticket keys");
  struct tls *probe = tls_server_new();
  r = tls_server_load(probe, buf_str(&cert), buf_str(&key), STR_NONE, err);
  tls_free(probe);
  if (r)
    return err_wrap(err, "%s and %s", s->cert, s->key);
  buf_addf(&all, "%zu %zu\n", cert.n, key.n);
  buf_adds(&all, buf_str(&cert));
  buf_adds(&all, buf_str(&key));
  buf_add(&all, tickets, sizeof(tickets));
  explicit_bzero(tickets, sizeof(tickets));
  int fd = buf_failed(&all) ? err_set(err, -ENOMEM, "no memory for the certificate") : seal(buf_str(&all), err);
  if (fd < 0)
    return fd;
  if (s->material >= 0)
    close(s->material);
  s->material = fd;
  s->tickets_us = clock_mono_us();
  return 0;
}

static void look(const struct tls_listener *s, struct stat at[2])
{
  memset(at, 0, 2 * sizeof(*at));
  if (stat(s->cert, &at[0]))
    at[0].st_size = -1;
  if (stat(s->key, &at[1]))
    at[1].st_size = -1;
}

static bool same(const struct stat *a, const struct stat *b)
{
  return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
         a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool tls_listener_renewed(struct tls_listener *s, bool now)
{
  struct stat at[2];
  struct err err = ERR_NONE;
  int64_t time = clock_mono_us();
  if (s->material < 0 || (!now && time - s->looked_us < LOOK_US))
    return false;
  s->looked_us = time;
  look(s, at);
  if (!now && same(&at[0], &s->seen[0]) && same(&at[1], &s->seen[1]) && time - s->tickets_us < TICKETS_US)
    return false;
  memcpy(s->seen, at, sizeof(at));
  if (load(s, &err)) {
    s->tickets_us = time; /* not again at once */
    log_error("the certificate in use stays: %s", err.msg);
    return false;
  }
  log_info("certificate read from %s", s->cert);
  return true;
}

static int open_listeners(struct tls_listener *s, const char *text, size_t n, struct service_manager *m,
                          struct err *err)
{
  char host[LISTEN_HOST_SIZE];
  uint16_t port;
  int r = listeners_open(m, "tls_listen", text, n, s->listeners, host, &port, err);
  if (r)
    return r;
  bool local =
      !strcmp(host, "0.0.0.0") || !strcmp(host, "127.0.0.1"); /* the name every certificate of `cloche tls init` has */
  snprintf(s->url, sizeof(s->url), "https://%s:%u", local ? "localhost" : host, port);
  return 0;
}

int tls_listener_open(struct tls_listener *s, const struct config *c, size_t ngates, struct service_manager *m,
                      struct err *err)
{
  *s = (struct tls_listener){.material = -1};
  s->listeners = xcalloc(ngates, sizeof(*s->listeners));
  for (size_t i = 0; i < ngates; i++)
    s->listeners[i] = -1;
  if (!c->tls_listen[0])
    return 0;
  if (!c->tls_cert[0] != !c->tls_key[0])
    return err_set(err, -EINVAL, "'tls_cert' and 'tls_key' belong together; only one of them is set");
  snprintf(s->cert, sizeof(s->cert), c->tls_cert[0] ? "%s" : "%s/tls/cert.pem",
           c->tls_cert[0] ? c->tls_cert : c->warden.data);
  snprintf(s->key, sizeof(s->key), c->tls_key[0] ? "%s" : "%s/tls/key.pem",
           c->tls_key[0] ? c->tls_key : c->warden.data);
  look(s, s->seen);
  int r = load(s, err);
  return r ? r : open_listeners(s, c->tls_listen, ngates, m, err);
}

void tls_listener_give(const struct tls_listener *s, int control, size_t gate, bool listener)
{
  if (s->material < 0 || control < 0)
    return;
  fd_send(control, &(char){CONTROL_CERTIFICATE}, 1, &s->material, 1, MSG_DONTWAIT);
  if (listener)
    fd_send(control, &(char){CONTROL_LISTEN_TLS}, 1, &s->listeners[gate], 1, MSG_DONTWAIT);
}
