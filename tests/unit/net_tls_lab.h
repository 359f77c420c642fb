/* SPDX-License-Identifier: Apache-2.0 */
/* net_tls_lab.h - the lab of net_lab.h behind TLS, and a client of OpenSSL's own to talk to it. */
#ifndef CLOCHE_NET_TLS_LAB_H
#define CLOCHE_NET_TLS_LAB_H

#include "net_lab.h"

#include "net/cert.h"
#include "net/tls.h"
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

static struct tls *lab_tls;
static struct cert lab_authority;

static void lab_certificate(struct cert *out)
{
  static const char *const names[] = {"*.box.test", "box.test", "localhost", "127.0.0.1"};
  struct err err = ERR_NONE;
  *out = CERT_INIT;
  assert_int_equal(cert_leaf(&lab_authority, names, ARRAY_LEN(names), out, &err), 0);
}

static void lab_open_tls(const struct http_limits *limits)
{
  struct err err = ERR_NONE;
  lab_open(limits);
  lab_authority = CERT_INIT;
  assert_int_equal(cert_authority("lab", &lab_authority, &err), 0);
  cleanup_cert struct cert leaf;
  lab_certificate(&leaf);
  lab_tls = tls_server_new();
  assert_int_equal(tls_server_load(lab_tls, buf_str(&leaf.cert), buf_str(&leaf.key), STR_NONE, &err), 0);
  assert_int_equal(http_server_listen_tls(lab.server, lab_listener(&lab.port), lab_tls), 0);
}

static void lab_close_tls(void)
{
  lab_close();
  tls_free(lab_tls);
  cert_free(&lab_authority);
}

struct client {
  SSL_CTX *ctx;
  SSL *ssl;
  int fd;
};

/* alpn: wire form, or NULL. The server's certificate is checked against the lab's authority. */
static struct client client_dial(const char *alpn, const char *host)
{
  struct client c = {.ctx = SSL_CTX_new(TLS_client_method()), .fd = lab_dial()};
  BIO *b = BIO_new_mem_buf(lab_authority.cert.p, (int)lab_authority.cert.n);
  X509 *ca = PEM_read_bio_X509(b, NULL, NULL, NULL);
  BIO_free(b);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(c.ctx), ca);
  X509_free(ca);
  SSL_CTX_set_verify(c.ctx, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_mode(c.ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  c.ssl = SSL_new(c.ctx);
  if (alpn)
    SSL_set_alpn_protos(c.ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn));
  SSL_set1_host(c.ssl, host);
  SSL_set_fd(c.ssl, c.fd);
  SSL_set_connect_state(c.ssl);
  return c;
}

static int client_handshake(struct client *c)
{
  for (int64_t limit = clock_mono_us() + 10000000; clock_mono_us() < limit; lab_turn()) {
    ERR_clear_error();
    int r = SSL_do_handshake(c->ssl);
    int e = r == 1 ? SSL_ERROR_NONE : SSL_get_error(c->ssl, r);
    if (e == SSL_ERROR_NONE)
      return 0;
    if (e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE)
      return -EPROTO;
  }
  return -ETIMEDOUT;
}

static struct client client_open(const char *alpn)
{
  struct client c = client_dial(alpn, "49983-abc.box.test");
  assert_int_equal(client_handshake(&c), 0);
  return c;
}

static void client_close(struct client *c)
{
  SSL_free(c->ssl);
  SSL_CTX_free(c->ctx);
  close(c->fd);
}

static void client_say(struct client *c, struct str s)
{
  for (int64_t limit = clock_mono_us() + 20000000; s.n && clock_mono_us() < limit; lab_turn()) {
    ERR_clear_error();
    int r = SSL_write(c->ssl, s.p, (int)MIN(s.n, (size_t)65536));
    if (r > 0)
      s = str_skip(s, (size_t)r);
    else if (SSL_get_error(c->ssl, r) != SSL_ERROR_WANT_WRITE && SSL_get_error(c->ssl, r) != SSL_ERROR_WANT_READ)
      return;
  }
}

enum heard { HEARD_BYTES, HEARD_NOTHING, HEARD_CLOSE, HEARD_CUT }; /* CLOSE: with close_notify */

static UNUSED enum heard client_hear(struct client *c, struct buf *out)
{
  char part[32768];
  ERR_clear_error();
  int r = SSL_read(c->ssl, part, sizeof(part));
  if (r > 0) {
    buf_add(out, part, (size_t)r);
    return HEARD_BYTES;
  }
  int e = SSL_get_error(c->ssl, r);
  return e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE ? HEARD_NOTHING
         : e == SSL_ERROR_ZERO_RETURN                          ? HEARD_CLOSE
                                                               : HEARD_CUT;
}

/* Until `end` stands at the tail, or, when it is NULL, until the connection ends. */
static UNUSED enum heard client_hear_until(struct client *c, struct buf *out, const char *end)
{
  for (int64_t limit = clock_mono_us() + 20000000; clock_mono_us() < limit;) {
    enum heard h = client_hear(c, out);
    if (end && str_ends(buf_str(out), str_of(end)))
      return HEARD_BYTES;
    if (h == HEARD_CLOSE || h == HEARD_CUT)
      return h;
    lab_turn();
    if (h == HEARD_NOTHING)
      usleep(50);
  }
  fail_msg("waited too long; got %zu bytes", out->n);
  return HEARD_CUT;
}

#endif
