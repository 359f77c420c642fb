/* SPDX-License-Identifier: Apache-2.0 */
/* h1reader.h - a whole HTTP/1.1 response taken apart as its bytes come, for clients that block: the command line. The
 * caller decides where the bytes come from and where the body goes; nothing here waits or keeps. The parser is
 * h1parse.c's, with the same limits as the server's own client. */
#ifndef CLOCHE_H1READER_H
#define CLOCHE_H1READER_H

#include "net/h1parse.h"

struct h1_reader {
  /* set by the caller */
  bool bodyless;                                                /* the request was a HEAD */
  void (*header)(void *arg, struct str name, struct str value); /* may be NULL */
  void *arg;

  int status;  /* 0: the head has not come yet; interim responses (1xx) are passed over */
  bool over;   /* the whole response came */
  bool closes; /* the connection can't carry another request */

  struct h1scan scan;
  struct h1_body body;
};

/* One step over what was read and not used yet: *used bytes of `in` are done with, *body is what of them belongs to the
 * body. None used: more must be read first. -EPROTO when this is no response, -ENOMEM. */
int h1_reader_take(struct h1_reader *r, struct str in, size_t *used, struct str *body);
/* The connection ended: 0 when the response may end so, else -ECONNRESET. */
int h1_reader_eof(struct h1_reader *r);

#endif
