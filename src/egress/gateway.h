/* SPDX-License-Identifier: Apache-2.0 */
/* gateway.h - what the files of this folder share; for this folder only. */
#ifndef CLOCHE_EGRESS_GATEWAY_H
#define CLOCHE_EGRESS_GATEWAY_H

#include "egress/egress_config.h"
#include "net/http.h"
#include "net/tls.h"
#include "wire/egress_policy.h"
#include "wire/ipc.h"
#include "wire/lookup.h"

struct flow;
struct request;

/* A policy in force or still in use by connections that began under it; counted references. */
struct rules {
  unsigned refs;
  struct arena arena;
  struct buf packed; /* wiped at the end */
  struct egress_policy policy;
  struct tls *proxy_tls; /* of the box's proxy; NULL: none, or public roots */
};

/* A token that may be used again. */
struct minted {
  struct minted *next;
  char name[EGRESS_REF_SIZE];
  struct str value; /* owned, wiped */
  int64_t until_us;
  bool missing; /* there is none of this name */
};

/* A certificate for one name. */
struct leaf {
  struct leaf *next; /* the last used one first */
  struct tls *tls;
  char name[DOMAIN_SIZE];
};

/* A connection to a server that waits for the next request of the same box to the same host. */
struct idle_upstream;
/* One that carries many requests of the same box to the same host. */
struct shared_upstream;

struct team {
  char id[UUID_SIZE];
  unsigned open, requests, refs;
};

/* A box as the gateway knows it, at its address. */
struct egress_box {
  struct gateway *gateway;
  uint32_t address;
  uint64_t generation, link; /* link: serial of the link that told it */
  char id[BOX_ID_SIZE];
  struct rules *rules; /* NULL: refused; its connections are reset */
  struct team *team;
  struct http_server *server; /* of inspected connections; made at first use */
  struct leaf *leaves;
  struct cert_signer *signer; /* of the policy's authority; made at first use */
  struct bucket signing;
  size_t nleaves;
  struct minted *minted;
  struct idle_upstream *idle;
  struct shared_upstream *shared;
  size_t nidle; /* of both */
  struct flow *flows;
  unsigned asks; /* for tokens, under way */
  struct bucket records;
  uint64_t lost_at;        /* loop time: when it was last told that there are more */
  unsigned open, requests; /* connections, and requests under way on those that are inspected */
  unsigned refs;           /* the table's, and one per flow */
  bool removed;
};

/* A question for a token that is under way. */
struct token_ask {
  struct token_ask *next;
  struct egress_box *box; /* whose request holds it */
  uint64_t id;
  uint64_t due; /* loop time */
  void (*answered)(void *arg, int status, struct str token, uint32_t good_for);
  void *arg;
};

struct gateway {
  uv_loop_t *loop;
  const struct egress_config *config, *given; /* as this process can, and as it was told */
  struct ipc *control, *link;
  struct map boxes; /* by address, 4 bytes */
  struct map teams;
  int listener;
  uv_poll_t *poll; /* of the listener; NULL: not listening */
  uv_timer_t tick;
  bool synced; /* all policies were told once */
  bool full;   /* told in the log */
  unsigned open, requests;
  struct tls *client; /* verifies against public roots */
  struct token_ask *asks;
  uint64_t last_ask;
  struct lookups lookups; /* of proxies' names */
};

/* box_table.c */
struct egress_box *egress_box_find(struct gateway *g, uint32_t address);
int egress_box_set(struct gateway *g, const struct egress_set_body *b, struct buf *packed, struct err *err);
void egress_box_remove(struct gateway *g, const struct egress_set_body *b);
void egress_box_sweep(struct gateway *g); /* those that the present link did not tell again */
void egress_box_unref(struct egress_box *b);
struct rules *rules_ref(struct rules *r);
void rules_unref(struct rules *r);
/* The server side of TLS for a name: a certificate of the box's authority. NULL with a reason. */
struct tls *egress_box_leaf(struct egress_box *b, const char *name, struct err *err);

/* egress.c */
int token_request(struct gateway *g, struct egress_box *b, struct str name,
                  void (*answered)(void *arg, int status, struct str token, uint32_t good_for), void *arg,
                  uint64_t *id);
void token_cancel(struct gateway *g, uint64_t id);
struct record {
  int64_t began_us;
  uint64_t in, out;
  uint32_t to;
  uint16_t port, status;
  bool proxied;
  enum egress_verdict verdict;
  struct str name, rule, method, path;
};
void record_send(struct gateway *g, struct egress_box *b, const struct rules *r, const struct record *record);
void bytes_wipe(struct buf *b); /* overwritten, then freed */

/* flow.c */
/* One accepted connection, from its first byte to its end. */
struct flow {
  struct egress_box *box;
  struct rules *rules;
  struct flow *next, **at; /* of the box */
  int fd;                  /* while nobody else has it */
  uv_poll_t *poll;
  uint64_t due;   /* loop time: the hello must be there; 0 = no longer waited for */
  uint64_t quiet; /* loop time: a peer that has said nothing by then wants to hear first */
  uint32_t to;    /* host byte order */
  uint16_t port;
  char name[DOMAIN_SIZE]; /* lower case; "" = none was said */
  int64_t began_us;
  struct dial *dial;
  struct relay *relay;
  bool counted, over;
};
void flow_accept(struct gateway *g, int fd);
void flow_tick(struct flow *f, uint64_t now);
void flow_cut(struct flow *f); /* its policy is gone */
void flow_end(struct flow *f); /* after its last use */

/* inspect.c */
int inspect_begin(struct flow *f, const struct egress_host *host);
void inspect_drop(struct egress_box *b); /* all of it */

/* upstream.c */
/* Whose a connection to a server is. */
struct upstream_key {
  struct egress_box *box;
  const struct rules *rules;
  const char *name;
  uint32_t address;
};
struct http_call *upstream_shared(const struct upstream_key *k); /* on an open connection of HTTP/2, or NULL */
struct http_call *upstream_idle(const struct upstream_key *k);   /* one of HTTP/1.1 that was kept, or NULL */
void upstream_share(const struct upstream_key *k, struct http_link *link); /* for later requests, or left */
void upstream_keep(const struct upstream_key *k, struct http_call *call);  /* the same; owned */
void upstreams_tick(struct egress_box *b, uint64_t now);                   /* UINT64_MAX: all are left */

/* Whether a policy lists the name of a flow, which may be handed to a proxy then. */
bool flow_name_listed(const struct flow *f, const struct egress_policy *p);
/* Whether the lists of names let it go on; those of addresses the host's filter keeps. */
bool flow_may_go(const struct flow *f, const struct egress_policy *p);

#endif
