/* sigv4.h - the signature AWS wants on a request (version 4 of its scheme). Pure: the clock's time is given. */
#ifndef CLOCHE_SIGV4_H
#define CLOCHE_SIGV4_H

#include "base/base.h"

#define SIGV4_DATE 17 /* 20260102T030405Z and NUL */

struct sigv4_header {
  const char *name; /* lower case; sorted by the caller */
  struct str value;
};

struct sigv4 {
  struct str key_id, secret, region, service;
  const char *method, *path; /* the path as it is sent, without a query */
  const struct sigv4_header *headers;
  size_t nheaders; /* x-amz-date among them */
  struct str body;
};

void sigv4_date(int64_t wall_us, char out[SIGV4_DATE]);
/* The value of the Authorization header. */
void sigv4_sign(const struct sigv4 *s, const char date[SIGV4_DATE], struct buf *out);

#endif
