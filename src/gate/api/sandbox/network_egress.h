/* SPDX-License-Identifier: Apache-2.0 */
/* network_egress.h - the two network settings that the egress gateway serves: header rules and the sandbox's own proxy.
 * Pure like network.h, which is the door to it: only network.c and what hands the settings on include this. */
#ifndef CLOCHE_GATE_NETWORK_EGRESS_H
#define CLOCHE_GATE_NETWORK_EGRESS_H

#include "gate/api/sandbox/network.h"

#define RULE_DOMAINS_MAX 10
#define RULE_DOMAIN_MAX  128
#define RULE_HEADERS_MAX 20
#define HEADER_NAME_MAX  64
#define HEADER_VALUE_MAX 2048
#define RULES_BYTES_MAX  32768 /* names and values of all rules together */
#define RULE_FILLED_MAX  64    /* placeholders of all rules together: each is looked up for each policy */
#define PROXY_AUTH_MAX   255   /* bytes of a user name, and of a password: what SOCKS can carry */
#define PROXY_CA_MAX     8192
#define PROXY_NAME_MAX   253

int network_read_rules(const struct json *from, unsigned features, struct network *n, struct err *err);
int network_read_proxy(const struct json *from, unsigned features, struct network *n, struct err *err);
/* As they are told back: names of domains in lower case, no password and no certificates. */
void network_put_rules(struct jw *w, const struct json *rules);
bool network_rules_set_headers(const struct json *rules); /* at least one does */
void network_put_proxy(struct jw *w, const struct json *proxy);

/* Of a setting that was read: the headers of one domain's rule, or NULL. */
const struct json *network_rule_headers(const struct json *rule);
/* Its domain in lower case, in `out`. */
struct str network_rule_domain(const struct json *rule, char out[RULE_DOMAIN_MAX + 1]);
/* The address of a proxy: host:port, perhaps behind socks5://, http:// or https:// in any case; [] of an IPv6 address
 * are taken off. False: it is none. Of a proxy that was read it is one. */
struct proxy_address {
  struct str host;
  unsigned port;
  bool http, tls; /* HTTP CONNECT, else SOCKS5; the scheme asks for TLS */
};
bool network_proxy_address(const struct json *proxy, struct proxy_address *out);

#endif
