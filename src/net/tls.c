/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c - TLS as a carrier of connections (struct conn_io), on OpenSSL.
 *
 * OpenSSL works on the connection's own socket through a BIO of ours, so nothing is copied twice and the socket's
 * fullness is the back-pressure, as it is without TLS. Output is cut into records of at most 16 KiB; small pieces are
 * joined into one. A record the socket did not take is held by OpenSSL and offered again with the same bytes, which the
 * queue of conn.c guarantees to be still at its front.
 *
 * Ends: a clean end says close_notify; an abort is a TCP reset without it, so that a client sees a broken transfer. A
 * peer that leaves without close_notify, as many do, counts as one that said it: HTTP's own framing tells whether
 * something is missing. A failed handshake is an end too, not an error, so that the alert still gets out.
 *
 * Handshakes cost more than anything else an unauthenticated peer can ask for: the loop takes HELLOS steps of them,
 * then others are served.
 *
 * Server: TLS 1.2 and newer, forward-secret AEAD ciphers, no renegotiation, no compression, session tickets, ALPN with
 * h2 before http/1.1. The certificate can be changed at any time: connections hold the context they began with. */
#include "net/tls.h"

#include "net/exchange.h"
#include "net/http2.h"
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#define RECORD     ((size_t)16384)
#define CERTS_MAX  16
#define HELLOS     16 /* steps of handshakes in one iteration of the loop: each may cost a signature */
#define SESSION_ID STR("cloche")

struct tls {
  SSL_CTX *ctx;  /* NULL: no certificate yet */
  bool verifies; /* a client that checks whom it speaks with */
  enum tls_plain plain;
};

/* What a connection holds in io_data. */
struct shell {
  SSL *ssl;
  void (*ready)(struct conn *c); /* the handshake is over; NULL once called */
  bool more;                     /* a read stopped with an event left to report */
  bool dry;                      /* the socket had no more bytes */
  bool maybe_plain;              /* nothing was read yet, and the peer may speak without TLS */
};

static BIO_METHOD *bio_method;

/* ---- the socket, as OpenSSL sees it ---- */

static int bio_result(BIO *b, ssize_t r)
{
  BIO_clear_retry_flags(b);
  if (r >= 0)
    return (int)r;
  if (errno != EAGAIN && errno != EINTR)
    return -1;
  return -2;
}

static int bio_read(BIO *b, char *p, int n)
{
  const struct conn *c = BIO_get_data(b);
  int r = bio_result(b, recv(c->fd, p, (size_t)n, MSG_DONTWAIT));
  struct shell *t = c->io_data;
  t->dry |= r == -2;
  if (r == -2)
    BIO_set_retry_read(b);
  if (r == 0)
    BIO_set_flags(b, BIO_FLAGS_IN_EOF);
  return MAX(r, -1);
}

static int bio_write(BIO *b, const char *p, int n)
{
  const struct conn *c = BIO_get_data(b);
  int r = bio_result(b, send(c->fd, p, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL));
  if (r == -2)
    BIO_set_retry_write(b);
  return MAX(r, -1);
}

static long bio_ctrl(BIO *b, int command, long n, void *p)
{
  (void)n, (void)p;
  if (command == BIO_CTRL_EOF)
    return BIO_test_flags(b, BIO_FLAGS_IN_EOF) != 0;
  return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP;
}

static BIO *bio_of(struct conn *c)
{
  BIO *b = BIO_new(bio_method);
  if (!b)
    return NULL;
  BIO_set_data(b, c);
  BIO_set_init(b, 1);
  return b;
}

void tls_prepare(void)
{
  unsigned char some[32];
  if (bio_method)
    return;
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
  bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "cloche connection");
  if (!bio_method || RAND_bytes(some, sizeof(some)) != 1) {
    log_error("OpenSSL can't be used: no memory or no randomness");
    abort();
  }
  BIO_meth_set_read(bio_method, bio_read);
  BIO_meth_set_write(bio_method, bio_write);
  BIO_meth_set_ctrl(bio_method, bio_ctrl);
}

/* ---- carrying ---- */

static struct shell *shell_of(const struct conn *c)
{
  return c->io_data;
}

/* What a call that did not succeed means to the connection: -EAGAIN, 0 for an end, or an error. */
static ssize_t outcome(struct conn *c, int r, bool writing)
{
  int code = errno;
  switch (SSL_get_error(shell_of(c)->ssl, r)) {
  case SSL_ERROR_WANT_READ:
    c->write_waits |= writing;
    return -EAGAIN;
  case SSL_ERROR_WANT_WRITE:
    c->read_waits |= !writing;
    return -EAGAIN;
  case SSL_ERROR_ZERO_RETURN:
    return 0;
  case SSL_ERROR_SYSCALL:
    return code ? -code : 0;
  default:
    return -EPROTO;
  }
}

/* 1 when the handshake is over; else as a read or write of the caller would answer. */
static ssize_t hello(struct conn *c, bool writing)
{
  struct shell *t = shell_of(c);
  if (SSL_is_init_finished(t->ssl) && !t->ready)
    return 1;
  if (c->net->hellos++ >= HELLOS) {
    t->more = true;
    return -EAGAIN;
  }
  t->more = false;
  ERR_clear_error();
  errno = 0;
  int r = SSL_do_handshake(t->ssl);
  if (r == 1) {
    void (*ready)(struct conn *) = t->ready;
    t->ready = NULL;
    c->write_waits = false;
    if (ready)
      ready(c);
    return c->closed ? -EAGAIN : 1;
  }
  ssize_t e = outcome(c, r, writing);
  if (e == -EAGAIN)
    return e;
  const char *why = ERR_reason_error_string(ERR_peek_error());
  long verdict = SSL_get_verify_result(t->ssl);
  c->refusal = verdict != X509_V_OK ? X509_verify_cert_error_string(verdict) : why ? why : "TLS handshake broken off";
  log_debug("TLS handshake failed: %s", why ? why : "the peer left");
  return writing ? -EPIPE : 0;
}

/* The peer has sent the first letter of a method where a handshake begins: it goes on without TLS. */
static void become_plain(struct conn *c)
{
  struct peer *peer = container_of(c, struct peer, conn);
  struct shell *t = shell_of(c);
  SSL_free(t->ssl);
  free(t);
  c->io_data = NULL;
  c->io = &conn_io_plain;
  peer->secure = false;
  conn_deadline(c, peer->server->limits.idle_ms);
}

static bool is_plain(struct conn *c)
{
  struct shell *t = shell_of(c);
  char first = 0;
  if (!t->maybe_plain || recv(c->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
    return false;
  t->maybe_plain = false;
  return first >= 'A' && first <= 'Z';
}

static ssize_t tls_read(struct conn *c, void *p, size_t n)
{
  size_t got = 0, k = 0;
  if (is_plain(c)) {
    become_plain(c);
    return c->io->read(c, p, n);
  }
  ssize_t r = hello(c, false);
  if (r <= 0)
    return r;
  struct shell *t = shell_of(c);
  t->more = false;
  do {
    ERR_clear_error();
    errno = 0;
    t->dry = false;
    int one = SSL_read_ex(t->ssl, (char *)p + got, n - got, &k);
    if (one != 1) {
      r = outcome(c, one, false);
      /* The end is reported by the next read, and no event may announce it; nor what stands behind a record without
       * data.
       */
      t->more = r == -EAGAIN ? !t->dry && !c->read_waits : got > 0;
      return got ? (ssize_t)got : r;
    }
    got += k;
  } while (n - got >= RECORD);
  t->more = true;
  return (ssize_t)got;
}

/* The next record's bytes: from one piece where they are contiguous, else joined in `room`. */
static struct str next_record(const struct iovec *v, int n, size_t from, char *room)
{
  size_t k = 0;
  int i = 0;
  for (; i < n && from >= v[i].iov_len; i++)
    from -= v[i].iov_len;
  if (i == n)
    return STR_NONE;
  if (i == n - 1 || v[i].iov_len - from >= RECORD)
    return str_make((char *)v[i].iov_base + from, MIN(v[i].iov_len - from, RECORD));
  for (; i < n && k < RECORD; i++, from = 0) {
    size_t part = MIN(v[i].iov_len - from, RECORD - k);
    memcpy(room + k, (char *)v[i].iov_base + from, part);
    k += part;
  }
  return str_make(room, k);
}

static ssize_t tls_write(struct conn *c, const struct iovec *v, int n, bool more)
{
  char room[RECORD];
  size_t sent = 0, k = 0;
  (void)more;
  ssize_t r = hello(c, true);
  if (r <= 0)
    return r;
  for (struct str s; (s = next_record(v, n, sent, room)).n; sent += k) {
    ERR_clear_error();
    errno = 0;
    int one = SSL_write_ex(shell_of(c)->ssl, s.p, s.n, &k);
    if (one == 1)
      continue;
    if (sent)
      return (ssize_t)sent;
    r = outcome(c, one, true);
    return r ? r : -EPIPE;
  }
  return (ssize_t)sent;
}

static int tls_shut(struct conn *c)
{
  ERR_clear_error();
  SSL_shutdown(shell_of(c)->ssl);
  return shutdown(c->fd, SHUT_WR) < 0 ? -errno : 0;
}

static bool tls_pending(const struct conn *c)
{
  return shell_of(c)->more;
}

static void tls_close(struct conn *c, bool clean)
{
  struct shell *t = shell_of(c);
  ERR_clear_error();
  if (clean && !c->shut_done && SSL_is_init_finished(t->ssl))
    SSL_shutdown(t->ssl);
  SSL_free(t->ssl);
  free(t);
  c->io_data = NULL;
}

static const struct conn_io tls_io = {tls_read, tls_write, NULL, tls_shut, tls_pending, tls_close};

static int carry(struct conn *c, struct tls *t, void (*ready)(struct conn *c))
{
  SSL *ssl = t->ctx ? SSL_new(t->ctx) : NULL;
  BIO *b = ssl ? bio_of(c) : NULL;
  if (!b) {
    SSL_free(ssl);
    return -ENOTCONN;
  }
  SSL_set_bio(ssl, b, b);
  struct shell *s = xcalloc(1, sizeof(*s));
  s->ssl = ssl;
  s->ready = ready;
  c->io = &tls_io;
  c->io_data = s;
  return 0;
}

/* ---- contexts ---- */

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *offer,
                           unsigned len, void *arg)
{
  static const unsigned char ours[] = "\x02h2\x08http/1.1";
  (void)ssl, (void)arg;
  if (SSL_select_next_proto((unsigned char **)out, n, ours, sizeof(ours) - 1, offer, len) == OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_OK;
  return SSL_TLSEXT_ERR_NOACK;
}

static SSL_CTX *context_new(const SSL_METHOD *method)
{
  tls_prepare();
  SSL_CTX *ctx = SSL_CTX_new(method);
  if (!ctx)
    return NULL;
  SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
  SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                               SSL_OP_PRIORITIZE_CHACHA | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_clear_mode(
      ctx,
      SSL_MODE_AUTO_RETRY); /* a flood of records without data (key updates) is read one by one, others between them */
  SSL_CTX_set_read_ahead(ctx, 1);
  return ctx;
}

static int no_passphrase(char *p, int n, int writing, void *arg)
{
  (void)p, (void)n, (void)writing, (void)arg;
  return -1;
}

static void bio_free(BIO **b)
{
  BIO_free(*b);
}

static int tls_error(struct err *err, const char *what)
{
  const char *why = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return err_set(err, -EINVAL, "%s: %s", what, why ? why : "not usable");
}

static int use_certificates(SSL_CTX *ctx, struct str pem, struct err *err)
{
  __attribute__((cleanup(bio_free))) BIO *b = BIO_new_mem_buf(pem.p, (int)MIN(pem.n, (size_t)INT32_MAX));
  X509 *leaf = b ? PEM_read_bio_X509(b, NULL, no_passphrase, NULL) : NULL;
  int ok = leaf ? SSL_CTX_use_certificate(ctx, leaf) : 0;
  X509_free(leaf);
  if (ok != 1)
    return tls_error(err, "the certificate");
  for (int i = 0; i < CERTS_MAX; i++) {
    X509 *next = PEM_read_bio_X509(b, NULL, no_passphrase, NULL);
    if (!next)
      break;
    if (SSL_CTX_add0_chain_cert(ctx, next) != 1) {
      X509_free(next);
      return tls_error(err, "the certificate chain");
    }
  }
  ERR_clear_error();
  return 0;
}

static int use_key(SSL_CTX *ctx, struct str pem, struct err *err)
{
  __attribute__((cleanup(bio_free))) BIO *b = BIO_new_mem_buf(pem.p, (int)MIN(pem.n, (size_t)INT32_MAX));
  EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, no_passphrase, NULL) : NULL;
  int ok = key ? SSL_CTX_use_PrivateKey(ctx, key) : 0;
  bool foreign = key && ok != 1; /* it could be read, and the certificate is another's */
  EVP_PKEY_free(key);
  if (!foreign && ok != 1)
    return tls_error(err, "the private key");
  if (!foreign && SSL_CTX_check_private_key(ctx) == 1)
    return 0;
  return tls_error(err, "the private key does not belong to the certificate");
}

static int server_settings(SSL_CTX *ctx, struct str tickets, struct err *err)
{
  SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
  SSL_CTX_set_session_id_context(ctx, (const unsigned char *)SESSION_ID.p, (unsigned)SESSION_ID.n);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets only: no state of peers is kept */
  SSL_CTX_set_num_tickets(ctx, 1);
  if (SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
    return tls_error(err, "the cipher list");
  if (tickets.n == TLS_TICKET_KEYS && SSL_CTX_set_tlsext_ticket_keys(ctx, (void *)tickets.p, TLS_TICKET_KEYS) != 1)
    return tls_error(err, "the ticket keys");
  return 0;
}

int tls_server_load(struct tls *t, struct str cert, struct str key, struct str tickets, struct err *err)
{
  SSL_CTX *ctx = context_new(TLS_server_method());
  if (!ctx)
    return err_set(err, -ENOMEM, "TLS: out of memory");
  int r = server_settings(ctx, tickets, err);
  r = r ? r : use_certificates(ctx, cert, err);
  r = r ? r : use_key(ctx, key, err);
  SSL_CTX *unused = r ? ctx : t->ctx;
  if (!r)
    t->ctx = ctx;
  SSL_CTX_free(unused);
  return r;
}

struct tls *tls_server_new(void)
{
  return xcalloc(1, sizeof(struct tls));
}

void tls_server_plain(struct tls *t, enum tls_plain who)
{
  t->plain = who;
}

struct tls *tls_client_new(void)
{
  struct tls *t = tls_server_new();
  t->ctx = context_new(TLS_client_method());
  if (t->ctx)
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_NONE, NULL);
  return t;
}

struct tls *tls_client_verified(X509_STORE *roots)
{
  struct tls *t = tls_client_new();
  if (t->ctx) {
    SSL_CTX_set1_cert_store(t->ctx, roots);
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
  }
  t->verifies = true;
  return t;
}

int tls_roots_add(X509_STORE *roots, struct str pem)
{
  __attribute__((cleanup(bio_free))) BIO *b = BIO_new_mem_buf(pem.p, (int)MIN(pem.n, (size_t)INT32_MAX));
  int n = 0;
  for (X509 *x; b && (x = PEM_read_bio_X509(b, NULL, no_passphrase, NULL)); X509_free(x))
    n += X509_STORE_add_cert(roots, x) == 1;
  ERR_clear_error();
  return n;
}

void tls_free(struct tls *t)
{
  if (!t)
    return;
  SSL_CTX_free(t->ctx);
  free(t);
}

/* ---- servers and calls ---- */

static void server_ready(struct conn *c)
{
  struct peer *p = container_of(c, struct peer, conn);
  const unsigned char *name;
  unsigned n;
  SSL_get0_alpn_selected(shell_of(c)->ssl, &name, &n);
  conn_deadline(c, p->server->limits.idle_ms);
  if (n == 2 && !memcmp(name, "h2", 2))
    http2_begin(p);
}

int http_server_adopt_tls(struct http_server *s, int fd, struct tls *t)
{
  return http_server_adopt_tls_for(s, fd, t, NULL);
}

int http_server_adopt_tls_for(struct http_server *s, int fd, struct tls *t, void *owner)
{
  struct peer *p;
  int r = server_admit(s, fd, false, &p);
  if (r)
    return r;
  r = carry(&p->conn, t, server_ready);
  if (r) {
    peer_end(p, HTTP_ABORTED, true);
    return r;
  }
  p->secure = true;
  shell_of(&p->conn)->maybe_plain = t->plain == TLS_PLAIN_SERVE || (t->plain == TLS_PLAIN_LOOPBACK && peer_is_near(p));
  SSL_set_accept_state(shell_of(&p->conn)->ssl);
  conn_deadline(&p->conn, s->limits.head_ms); /* for the handshake */
  p->owner = owner;
  return 0;
}

static int admit_tls(struct http_server *s, int fd, void *arg)
{
  return http_server_adopt_tls(s, fd, arg);
}

int http_server_listen_tls(struct http_server *s, int fd, struct tls *t)
{
  return server_listen(s, fd, admit_tls, t);
}

/* The name is said (SNI) and, by a client that verifies, looked for in the certificate. An address is only looked for.
 */
static int expect_name(const struct tls *client, SSL *ssl, const char *name)
{
  unsigned char address[16];
  bool numeric = name && (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1);
  if (name && !numeric && SSL_set_tlsext_host_name(ssl, name) != 1)
    return -EINVAL;
  if (!client->verifies)
    return 0;
  if (!name || !*name)
    return -EINVAL;
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  int ok = numeric ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) : SSL_set1_host(ssl, name);
  return ok == 1 ? 0 : -EINVAL;
}

int tls_conn_connect(struct conn *c, struct tls *client, const char *name, struct str protocols,
                     void (*ready)(struct conn *c))
{
  if (carry(c, client, ready))
    return -ENOMEM;
  SSL *ssl = shell_of(c)->ssl;
  if (protocols.n)
    SSL_set_alpn_protos(ssl, (const unsigned char *)protocols.p, (unsigned)protocols.n);
  SSL_set_connect_state(ssl);
  return expect_name(client, ssl, name);
}

struct str tls_conn_protocol(const struct conn *c)
{
  const unsigned char *name = NULL;
  unsigned n = 0;
  SSL_get0_alpn_selected(shell_of(c)->ssl, &name, &n);
  return str_make(name, n);
}

struct http_call *http_call_new_tls(uv_loop_t *loop, int fd, const struct http_limits *limits, struct tls *client,
                                    const char *name)
{
  struct http_call *call = http_call_new(loop, fd, limits);
  struct conn *c = call ? call_conn(call) : NULL;
  if (!c || tls_conn_connect(c, client, name, STR("\x08http/1.1"), NULL)) {
    http_call_free(call);
    return NULL;
  }
  return call;
}
