/* SPDX-License-Identifier: Apache-2.0 */
/* bench_http.h - sends requests over HTTP/1.1 and waits: one connection, one request at a time, open between them.
 * For measuring, so it adds as little time of its own as can be; times are read next to the system calls that matter.
 */
#ifndef CLOCHE_CLI_BENCH_BENCH_HTTP_H
#define CLOCHE_CLI_BENCH_BENCH_HTTP_H

#include "base/base.h"

struct origin {
  char host[256], port[8];
  bool tls;
};

/* http:// or https://, a host, perhaps a port. A path is refused. */
int origin_parse(struct origin *o, const char *url, struct err *err);

struct call {
  const char *method, *path;
  const char *headers; /* lines that end in CRLF, or NULL */
  struct str body;     /* sent with its length when the method is not GET */
  const char *watch;   /* text of the answer whose first sight is timed, or NULL */
  bool count_only;     /* the answer's bytes are counted, not kept */

  int status;
  struct buf answer;
  uint64_t bytes; /* of the answer's body */
  int64_t began_ns, seen_ns,
      ended_ns;      /* before the first byte went out; `watch` seen (0 = never); after the last came */
  char timing[1024]; /* the answer's Server-Timing */
};
#define CALL_ANSWER_MAX ((size_t)64 << 20)

struct bench_http;
struct bench_http *bench_http_new(const struct origin *o); /* o is borrowed; connects at the first request */
int bench_http_connect(struct bench_http *c, struct err *err);
/* 0 when a whole answer came, whatever its status. An answer left in k by an earlier use is dropped. */
int bench_http_request(struct bench_http *c, struct call *k, struct err *err);
/* The halves of bench_http_request, for many connections at once from one thread. */
int bench_http_send(struct bench_http *c, struct call *k, struct err *err);
int bench_http_receive(struct bench_http *c, struct call *k, struct err *err);
void bench_http_free(struct bench_http *c);
static inline void bench_http_free_p(struct bench_http **c)
{
  bench_http_free(*c);
}
static inline void call_free_p(struct call *k)
{
  buf_free(&k->answer);
}
#define cleanup_caller __attribute__((cleanup(bench_http_free_p)))
#define cleanup_call   __attribute__((cleanup(call_free_p)))

int64_t now_ns(void);
static inline double call_ms(const struct call *k)
{
  return (double)(k->ended_ns - k->began_ns) / 1e6;
}

#endif
