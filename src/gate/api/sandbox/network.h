/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - the network settings of a sandbox as clients write them, checked word by word before anything is stored.
 * Pure: no gate, no socket; what is kept points into the JSON that was read. */
#ifndef CLOCHE_GATE_NETWORK_H
#define CLOCHE_GATE_NETWORK_H

#include "base/base.h"

/* What this server can do; the rest is checked and then refused by name. */
enum { NETWORK_PROXY = 1, NETWORK_RULES = 2, NETWORK_HTTPS = 4 };

struct network {
  bool given;  /* there was a `network` object */
  bool public; /* allowPublicTraffic; true when not said */
  const struct json *allow_out, *deny_out, *rules, *https_ports, *mask_host, *proxy; /* NULL when not given */
  const struct json *dns_servers; /* NULL when not given; an empty array means none at all */
  const struct json *internet;    /* allow_internet_access; NULL when not given */
};

#define NETWORK_ALL       "0.0.0.0/0"
#define NETWORK_PORTS_MAX 128 /* httpsPorts */
#define NETWORK_DNS_MAX   10  /* dnsServers */

/* -EINVAL: a mistake of the caller (400). -EPERM: a feature this server does not offer (403). */
int network_read(const struct json *network, const struct json *internet, unsigned features, struct network *out,
                 struct err *err);
/* An update replaces what goes out and keeps what comes in: `next` gets the latter from `old`, a stored object. */
void network_keep_ingress(struct network *next, const struct json *old);
/* The object as it is stored and told back; the proxy's password is left out. Nothing is written when nothing is set.
 */
bool network_said(const struct network *n);
void network_put(struct jw *w, const struct network *n);
/* The same without header rules: their values are kept apart, sealed (W_RULES). */
void network_put_open(struct jw *w, const struct network *n);

/* Lists as lines, for the warden. What may be reached includes the name servers, where they matter: as `dns:ADDRESS`,
 * or `dns:none` (jail_net.h). */
void network_lines(struct buf *b, const struct json *list);
void network_allow_lines(struct buf *b, const struct network *n);

/* A host name: labels of letters, digits, - and _, no empty one, 253 bytes at most. */
bool network_dns_name(struct str s);
/* Four numbers and dots are meant as an address, never as a name. */
bool network_numeric(struct str s);
/* 32 or 128: bits of the address; 0 = it is none. */
int network_address(struct str s, uint8_t out[16]);

/* One entry of a list. */
enum network_entry { ENTRY_BAD, ENTRY_ADDRESS, ENTRY_RANGE, ENTRY_DOMAIN };
enum network_entry network_entry(struct str text);

#endif
