/* SPDX-License-Identifier: Apache-2.0 */
/* dns_message.h - as much of the domain name system as it takes to know what is asked and which addresses are answered.
 * Bytes come from boxes and from the network: lengths are checked before anything is read, and nothing is allocated. */
#ifndef CLOCHE_JAIL_NET_DNS_MESSAGE_H
#define CLOCHE_JAIL_NET_DNS_MESSAGE_H

#include "base/base.h"

#define DNS_NAME      256 /* text with dots, lower case, closing NUL */
#define DNS_MESSAGE   4096
#define DNS_ADDRESSES 32

struct dns_question {
  char name[DNS_NAME];
  uint16_t id, type;
  size_t end; /* of the question in the message */
};

/* A standard query with one question of class IN; -EINVAL for anything else. */
int dns_question(const uint8_t *m, size_t n, struct dns_question *q);
/* Writes a query for the A records of a name, its number 0; the length, or 0 when it does not fit. */
size_t dns_ask(uint8_t *m, size_t room, struct str name);
/* An answer to it: same question, response bit. Gives its A records. */
struct dns_answer {
  uint32_t address[DNS_ADDRESSES]; /* host byte order */
  uint32_t ttl;                    /* the smallest; 0 when there are none */
  size_t count;
};
int dns_answer(const uint8_t *m, size_t n, const struct dns_question *q, struct dns_answer *a);
/* Turns a query of q.end bytes or more into a refusal in place; the length to send. */
size_t dns_refuse(uint8_t *m, const struct dns_question *q);

/* Whether a name is on a list of lines: "name" is itself alone, "*.name" all below it, "*" any. Case does not matter.
 */
bool dns_listed(struct str lines, const char *name);
/* A pattern of that kind, at most 253 characters of letters, digits, '-', '_' and dots. */
bool dns_pattern(const char *entry);

#endif
