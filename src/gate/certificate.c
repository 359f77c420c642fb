/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - what a gate gets from its supervisor for https: the certificate and its key as sealed memory, and the
 * socket. A certificate that comes later takes the place of the first for new connections only. */
#include "gate/certificate.h"

#include "net/tls.h"
#include <sys/mman.h>

/* "<bytes of the certificate> <bytes of the key>\n", both, and the ticket keys. */
static void open_tls(struct gate *g)
{
  if (g->tls)
    return;
  g->tls = tls_server_new();
  tls_server_plain(g->tls, (enum tls_plain)g->config->tls_plain);
}

static int take(struct tls *t, struct str all, struct err *err)
{
  struct str head, rest, certs, keys;
  uint64_t ncert, nkey;
  if (!str_cut(all, '\n', &head, &rest) || !str_cut(head, ' ', &certs, &keys) || str_u64(certs, &ncert) ||
      str_u64(keys, &nkey) || ncert > rest.n || nkey > rest.n - ncert)
    return err_set(err, -EPROTO, "malformed");
  struct str key = str_sub(rest, ncert, nkey);
  return tls_server_load(t, str_sub(rest, 0, ncert), key, str_skip(rest, ncert + nkey), err);
}

void gate_take_certificate(struct gate *g, int fd)
{
  cleanup_fd int file = fd;
  struct err err = ERR_NONE;
  off_t size = lseek(file, 0, SEEK_END);
  void *p = size > 0 ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  if (p == MAP_FAILED) {
    log_error("gate: certificate: %s", strerror(errno));
    return;
  }
  open_tls(g);
  if (take(g->tls, str_make(p, (size_t)size), &err))
    log_error("gate: certificate: %s", err.msg);
  munmap(p, (size_t)size);
}

void gate_take_tls_listener(struct gate *g, int fd)
{
  open_tls(g);
  http_server_listen_tls(g->server, fd, g->tls);
}
