/* SPDX-License-Identifier: Apache-2.0 */
/* egress_policy.h - what warden and egress gateway say to each other. Both sides include this and nothing of the other.
 *
 * One SOCK_SEQPACKET pair, made by the supervisor each time either side starts (CONTROL_EGRESS to the warden,
 * CONTROL_LINK to the gateway). A packet is a struct egress_head and a body whose shape its type decides:
 *
 *   warden to gateway
 *     EGRESS_LISTEN  no body; the listening socket comes along (jail_net_listen), first on each link. The warden keeps
 *                    its own descriptor, so that nothing is refused while a gateway is started again
 *     EGRESS_SET     body struct egress_set_body; a sealed memfd comes along that holds the policy as
 *                    egress_policy_pack wrote it (too long for a packet, and gone from both sides once it was read)
 *     EGRESS_REMOVE  body struct egress_set_body: the box at this address has no policy any more; its connections end
 *     EGRESS_SYNC    no body: all policies were sent. Sent once per link, after them
 *     EGRESS_TOKEN   body struct egress_token_body, then the token's bytes
 *   gateway to warden
 *     EGRESS_APPLIED    body struct egress_applied_body, then a message where status is not 0
 *     EGRESS_TOKEN_ASK  body struct egress_ask_body
 *     EGRESS_RECORD     body struct egress_record_body, then name, rule, method and path without separators
 *
 * Order. At a new link the warden sends SET for every box that has a policy, running or about to run, then SYNC. Until
 * the first SYNC of its life the gateway accepts no connection (they wait in the listener's queue); at each later SYNC
 * it drops the policies that were not sent again on this link. Between two links it goes on with what it has.
 *
 * Generations are the warden's and only grow; of two SETs or REMOVEs for one address the one with the greater
 * generation holds, and one with a smaller is answered but changes nothing. Each SET and REMOVE is answered by one
 * APPLIED with its generation; status 0: connections made from now on are judged by it. The warden turns the box's
 * traffic to the gateway (jail_net) before the box's first process runs, and lets a create or PUT return once APPLIED
 * came. Without a policy a redirected connection is reset, so neither order leaks; SET of a *new box* on an address
 * first empties the listener's queue, so what a dead box left there is never judged by the next box's policy. A
 * replaced policy holds for new connections and for new requests on inspected ones.
 *
 * Secrets. The policy carries the current value of each secret that its headers name; the warden sends a new policy
 * (next generation) when one changes or is deleted. One that does not exist (yet) is sent with `missing`: requests that
 * need it are answered 502 with its name. Identity tokens are asked for by name, per request (TOKEN_ASK); the answer
 * may say for how many seconds the token can be used again, 0 = once. No answer in time (egress_token_seconds): 502.
 *
 * Everything from the gateway is checked by length and range before use (egress_packet_check); text in records was
 * written by a box and is printable ASCII, the rest replaced by '?'. */
#ifndef CLOCHE_WIRE_EGRESS_POLICY_H
#define CLOCHE_WIRE_EGRESS_POLICY_H

#include "wire/sizes.h"
#include "base/base.h"

#define EGRESS_HOSTS_MAX    64u /* per policy; the API allows fewer */
#define EGRESS_HEADERS_MAX  64u /* per host */
#define EGRESS_PIECES_MAX   64u /* per header value */
#define EGRESS_SECRETS_MAX  64u /* distinct ones per policy */
#define EGRESS_FILLED_MAX   64u /* placeholders per policy, in all its headers */
#define EGRESS_NETS_MAX     2048u
#define EGRESS_SECRET_MAX   (64u << 10) /* bytes of a secret's value */
#define EGRESS_TOKEN_MAX    (16u << 10) /* bytes of an identity token */
#define EGRESS_POLICY_MAX   ((size_t)4 << 20)
#define EGRESS_PACKET_MAX   (32u << 10)
#define EGRESS_REF_SIZE     160u /* name of a secret or identity token, with its NUL */
#define EGRESS_MESSAGE_SIZE 256u

/* ---- the policy ---- */

enum egress_piece_kind { EGRESS_LITERAL = 1, EGRESS_SECRET, EGRESS_IDENTITY };

/* `text`: the literal bytes, the secret's name (lower case) or the identity token's name. */
struct egress_piece {
  enum egress_piece_kind kind;
  struct str text;
  uint32_t secret; /* EGRESS_SECRET: which of the policy's; set by egress_policy_read, not written */
};

/* Set in place of whatever the box sent under that name. */
struct egress_header {
  struct str name; /* as it is written; compared without case */
  struct egress_piece *pieces;
  size_t npieces;
};

/* pattern: lower case; "name" is itself alone, "*.name" everything below it and not itself. The exact one beats the
 * longest wildcard; they are not merged. */
struct egress_host {
  struct str pattern;
  struct egress_header *headers;
  size_t nheaders;
};

struct egress_secret {
  struct str name, value;
  bool missing;
};

struct egress_net {
  uint32_t address; /* host byte order */
  uint32_t bits;    /* 0 to 32 */
};

enum egress_proxy_kind { EGRESS_DIRECT, EGRESS_SOCKS5, EGRESS_CONNECT };

/* The box's own upstream proxy; with one, all TCP of the box comes to the gateway. */
struct egress_proxy {
  enum egress_proxy_kind kind; /* EGRESS_DIRECT: none, the rest is empty */
  struct str host;             /* name or IPv4 address: resolved and checked at each dial */
  uint16_t port;
  struct str user, password; /* user empty = without authentication */
  bool tls;
  struct str server_name; /* empty = host */
  struct str ca;          /* PEM; empty = public roots; else it replaces them */
};

enum egress_log { EGRESS_LOG_OFF, EGRESS_LOG_NAMES, EGRESS_LOG_FULL };

struct egress_policy {
  char box[BOX_ID_SIZE];
  char team[UUID_SIZE];
  enum egress_log log;
  struct egress_host *hosts;
  size_t nhosts;
  struct egress_secret *secrets; /* each that a header names, once */
  size_t nsecrets;
  struct egress_proxy proxy;
  struct str ca_cert, ca_key; /* PEM, the box's authority (EC P-256); may be empty where there are no hosts */
  /* The box's allow and deny lists are in force before a connection comes here, for its address. What the gateway does
   * with them: where the box has any list (restricted), a name from the box (SNI, Host) is handed to a proxy for
   * resolving only if allow_names lists it, else the address is; and where allow_names is not empty, a connection to
   * port 80 or 443 whose address is not within allow_nets needs a listed name. */
  bool restricted;
  struct str allow_names; /* lines: "name", "*.name", "*"; as in jail_net's lists */
  struct egress_net *allow_nets;
  size_t nallow_nets;
};

/* Appends; look at buf_failed. The buffer holds secrets: wipe it (explicit_bzero of p, n) before freeing. */
void egress_policy_pack(struct buf *out, const struct egress_policy *p);
/* Texts point into `packed`, arrays are in the arena. -EINVAL with a reason (never a value) when anything is not as
 * above: lengths, counts, kinds, patterns, header names, CR, LF or NUL in a literal, a secret without an entry, more
 * placeholders than EGRESS_FILLED_MAX. */
int egress_policy_read(struct arena *a, struct str packed, struct egress_policy *out, struct err *err);

/* Takes a header value of network.rules apart: ${e2b.secrets.NAME} and ${e2b.identity.tokens.NAME} between literals.
 * Pieces are in the arena, texts point into `value`. -EINVAL: unterminated, empty, nested, of another kind, or
 * too many. */
int egress_value_read(struct arena *a, struct str value, struct egress_piece **pieces, size_t *n, struct err *err);
bool egress_pattern_ok(struct str pattern);                       /* lower-case DNS name, or "*." before one */
bool egress_pattern_matches(struct str pattern, struct str name); /* name in lower case */
/* Best rule for a name (lower case), or NULL. */
const struct egress_host *egress_host_find(const struct egress_policy *p, struct str name);

/* ---- packets ---- */

enum egress_type {
  EGRESS_SET = 1,
  EGRESS_REMOVE,
  EGRESS_SYNC,
  EGRESS_TOKEN,
  EGRESS_APPLIED,
  EGRESS_TOKEN_ASK,
  EGRESS_RECORD,
  EGRESS_LISTEN,
};

struct egress_head {
  uint32_t type;
  uint32_t length; /* of all that follows */
};

struct egress_set_body {
  uint64_t generation;
  uint32_t address; /* the box's, host byte order */
  uint32_t length;  /* of the policy in the descriptor; 0 in REMOVE */
  char box[BOX_ID_SIZE];
};

struct egress_applied_body {
  uint64_t generation;
  uint32_t address;
  int32_t status; /* 0 or a negative errno; a refused SET leaves the box without a policy: its connections are reset */
};

struct egress_ask_body {
  uint64_t id; /* the gateway's; told back in the answer */
  uint32_t address;
  uint32_t reserved;
  char box[BOX_ID_SIZE];
  char name[EGRESS_REF_SIZE];
};

struct egress_token_body {
  uint64_t id;
  int32_t status;    /* 0, -ENOENT: no such token registered, others: can't be minted now */
  uint32_t good_for; /* seconds it may be used again */
};

enum egress_verdict {
  EGRESS_PASSED = 1,  /* tunnelled untouched */
  EGRESS_INSPECTED,   /* one per request: method, path and status are there (log full) */
  EGRESS_REFUSED,     /* by us: no policy, a limit, a name that is not allowed, a rule that could not be served */
  EGRESS_UNREACHABLE, /* the server or proxy could not be reached or not be verified */
  EGRESS_LOST,        /* no connection: the box made more than are recorded, once a second; no texts */
};

struct egress_record_body {
  int64_t wall_us;  /* its beginning */
  uint64_t in, out; /* bytes from and to the server */
  uint32_t address; /* the box's */
  uint32_t to;      /* where it wanted to go, host byte order */
  uint16_t port;
  uint16_t verdict;                  /* enum egress_verdict */
  uint16_t status;                   /* of the answer; 0 = none */
  uint16_t proxied;                  /* 1: through the box's own proxy */
  uint16_t name, rule, method, path; /* lengths of the texts that follow, in this order */
  char box[BOX_ID_SIZE];
};

#define EGRESS_RECORD_TEXT_MAX 1024u /* of each text; longer ones are cut */

union egress_body {
  struct egress_set_body set;
  struct egress_applied_body applied;
  struct egress_ask_body ask;
  struct egress_token_body token;
  struct egress_record_body record;
};

/* Builds a packet in `out` (cleared before). `text` may be empty. */
void egress_packet(struct buf *out, enum egress_type type, const union egress_body *body, struct str text);
/* The whole packet is well formed: type, lengths, closing NULs, verdicts. The body is copied out, *text gets what
 * follows it. -EINVAL. */
int egress_packet_read(struct str packet, enum egress_type *type, union egress_body *body, struct str *text);
/* The four texts of a record. */
struct egress_record_text {
  struct str name, rule, method, path;
};
void egress_record_texts(const struct egress_record_body *r, struct str text, struct egress_record_text *out);

#endif
