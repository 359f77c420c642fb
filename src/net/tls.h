/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h - TLS below the http face: servers that speak it, calls to services that do. See tls.c. */
#ifndef CLOCHE_TLS_H
#define CLOCHE_TLS_H

#include "net/http.h"
#include <openssl/types.h>

#define TLS_TICKET_KEYS 80 /* bytes that let a ticket of one process be taken by another */

struct tls;

/* Everything OpenSSL takes from the system is taken here, so that a process may give up its files afterwards. */
void tls_prepare(void);

struct tls *tls_server_new(void);
/* PEM, the leaf first. New connections use it from now on, open ones go on as they are; a failure changes nothing.
 * tickets: TLS_TICKET_KEYS random bytes, or empty for keys of this process alone. */
int tls_server_load(struct tls *t, struct str cert, struct str key, struct str tickets, struct err *err);
/* Who may speak plain HTTP/1.1 on the same port: nobody, whose first bytes are then a failed handshake; whoever
 * connects from this host; or anybody. A connection is plain when its first byte is a letter that a method begins with,
 * which no handshake does; http_x_secure says false of it. */
enum tls_plain { TLS_PLAIN_REFUSE, TLS_PLAIN_LOOPBACK, TLS_PLAIN_SERVE };
void tls_server_plain(struct tls *t, enum tls_plain who);
/* Looks at nothing: for services inside a box, whose certificates nobody vouches for. */
struct tls *tls_client_new(void);
/* Speaks only with who has a certificate of one of these for the name it was called by. Holds a reference of its own.
 */
struct tls *tls_client_verified(X509_STORE *roots);
int tls_roots_add(X509_STORE *roots, struct str pem); /* number of certificates that were added */
void tls_free(struct tls *t); /* after whatever listens with it; open connections keep what they need */

int http_server_listen_tls(struct http_server *s, int fd,
                           struct tls *t); /* fd owned, t borrowed; HTTP/2 or HTTP/1.1 as the client likes */
int http_server_adopt_tls(struct http_server *s, int fd, struct tls *t);
/* owner: whose connection it is: http_x_owner, http_server_owned. */
int http_server_adopt_tls_for(struct http_server *s, int fd, struct tls *t, void *owner);
/* A connection of one's own becomes a TLS client's. protocols: for ALPN, as on the wire; `ready` comes after the
 * handshake. c->refusal says why one failed. */
struct conn;
int tls_conn_connect(struct conn *c, struct tls *client, const char *name, struct str protocols,
                     void (*ready)(struct conn *c));
struct str tls_conn_protocol(const struct conn *c); /* that ALPN chose; empty = none */
/* name: sent as SNI, and verified by a client that does; NULL = none. HTTP/1.1. */
struct http_call *http_call_new_tls(uv_loop_t *loop, int fd, const struct http_limits *limits, struct tls *client,
                                    const char *name);

/* A connection to a server that chooses between HTTP/2 and HTTP/1.1 (ALPN). HTTP/2: a link, which carries many calls at
 * once. See http2_link.c. */
struct http_link;
/* Once, after the handshake. A link; or a call, which is HTTP/1.1 as of http_call_new_tls; or neither, with the reason.
 * Either is the caller's. */
typedef void (*http_link_opened)(void *arg, struct http_link *link, struct http_call *call, int code, const char *why);
struct http_link_plan {
  const struct http_limits *limits;
  struct tls *client;
  const char *name;
  unsigned hello_ms;  /* for the handshake */
  size_t streams_max; /* calls at once; the server may want fewer */
  http_link_opened opened;
  void *arg;
};
struct http_link *http_link_open(uv_loop_t *loop, int fd, const struct http_link_plan *plan); /* fd owned */
/* closed: it takes no more calls, and is no longer the caller's: it goes with the last of its calls. */
void http_link_handle(struct http_link *l, void (*closed)(struct http_link *l, void *arg), void *arg);
bool http_link_usable(const struct http_link *l);      /* for one more call */
size_t http_link_calls(const struct http_link *l);     /* that were not freed */
struct http_call *http_link_call(struct http_link *l); /* carries one request; NULL: not usable */
void http_link_leave(struct http_link *l); /* the caller's no longer; `opened` and `closed` do not come after it */

#endif
