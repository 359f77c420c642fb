/* SPDX-License-Identifier: Apache-2.0 */
/* http_answer.h - takes an answer of HTTP/1.1 apart as its bytes come. Whoever reads decides where the bytes come from
 * and where the body goes: nothing here waits or keeps. What it is shown was written by a stranger, and what is no
 * answer is refused. */
#ifndef CLOCHE_CLI_HTTP_ANSWER_H
#define CLOCHE_CLI_HTTP_ANSWER_H

#include "base/base.h"

#define ANSWER_LINE_MAX ((size_t)64 << 10) /* longest line of a head */

struct answer {
  /* set by the asker */
  bool bodiless; /* the question was HEAD */
  void (*header)(void *arg, struct str name, struct str value);
  void *arg;

  int status;  /* 0: the head is not there yet; answers before the last one (1xx) are passed over */
  bool over;   /* the whole answer came */
  bool closes; /* the connection can't be asked again */

  int stage, code;
  bool sized, chunked;
  uint64_t left;
};

/* One step over what was read and not used yet: *used bytes of `in` are done with, *body is what of them belongs to the
 * body. None used: more must be read first. -EPROTO when this is no answer. */
int answer_take(struct answer *a, struct str in, size_t *used, struct str *body);
/* The connection ended: 0 when the answer may end so, else -ECONNRESET. */
int answer_cut(struct answer *a);

#endif
