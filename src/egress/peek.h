/* SPDX-License-Identifier: Apache-2.0 */
/* peek.h - which host a connection is for, from its first bytes, which stay where they are. Pure functions over bytes
 * that a box wrote: lengths before reads, nothing kept. */
#ifndef CLOCHE_EGRESS_PEEK_H
#define CLOCHE_EGRESS_PEEK_H

#include "base/base.h"
#include "wire/sizes.h"

#define PEEK_MAX ((size_t)20 << 10) /* bytes of a hello; a longer one has no name */

enum peek {
  PEEK_MORE,   /* more bytes must come */
  PEEK_NAMED,  /* the name is there, in lower case */
  PEEK_NONE,   /* a hello or request without a name */
  PEEK_OTHER,  /* neither TLS nor HTTP */
  PEEK_BROKEN, /* begins like TLS and is none, or says two different names */
};

/* A TLS ClientHello, over as many records as it takes: its server_name. */
enum peek peek_tls(struct str in, char name[DOMAIN_SIZE]);
/* A request head in HTTP/1: its Host, without the port. */
enum peek peek_http(struct str in, char name[DOMAIN_SIZE]);
/* A name as it may stand in either: lower case of at most 253 characters of letters, digits, '-', '_' and dots, at
 * least one of them a letter; one closing dot is left out. False: not one. */
bool peek_name(struct str s, char name[DOMAIN_SIZE]);

#endif
