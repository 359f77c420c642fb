/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_output.h - what a run produces, turned into the lines its client reads.
 *
 * Both drivers feed it; it knows the event catalogue of the HTTP stream: field names by MIME type, quote stripping,
 * one error per run at most, time stamps, ASCII. It also joins neighbouring pieces of one text stream for kernels that
 * asked for it: the driver calls output_flush() a moment after output_waiting() became true; a display, an
 * error, the end and a full piece flush by themselves. Values given as `raw` are checked JSON tokens. */
#ifndef CLOCHE_AGENT_INTERPRETER_KERNEL_OUTPUT_H
#define CLOCHE_AGENT_INTERPRETER_KERNEL_OUTPUT_H

#include "base/base.h"

enum { OUTPUT_STDOUT, OUTPUT_STDERR };

#define OUTPUT_PIECE       ((size_t)64 << 10)  /* longest text of one stdout or stderr event */
#define OUTPUT_LINE_MAX    ((size_t)1 << 30)   /* longest line to a client: a message of 256 MiB, escaped */
#define OUTPUT_MESSAGE_MAX ((size_t)256 << 20) /* longest message from a kernel */

struct output_text {
  struct buf body; /* escaped ASCII that waits to be sent */
  int64_t stamp;   /* wall clock of its first piece */
  char tail[4];    /* a UTF-8 sequence that a pipe has not delivered whole */
  size_t ntail;
};

struct output {
  void (*line)(void *arg, struct str line); /* one event with its LF; called only during a run */
  void *arg;
  uint64_t limit; /* most bytes of one run; 0 = none */
  bool coalesce;
  bool live, failed, cut; /* a run is on; its error was sent; its limit was reached */
  uint64_t used;
  int first; /* which stream's waiting text began earlier */
  struct output_text text[2];
  struct buf out;
};

void output_init(struct output *o, void (*line)(void *arg, struct str line), void *arg);
void output_free(struct output *o);

void output_begin(struct output *o);
void output_end(struct output *o); /* what waits is sent; later events are dropped */

void output_count(struct output *o, int64_t n);
void output_stream(struct output *o, int which, struct str body, int64_t stamp);
void output_bytes(struct output *o, int which, struct str bytes); /* from a pipe, cut anywhere */
void output_display(struct output *o, bool main, struct str data);
void output_error(struct output *o, struct str name, struct str value, struct str traceback); /* raw; absent = "" */
void output_fault(struct output *o, const char *name, const char *value, const char *traceback);

bool output_waiting(const struct output *o);
void output_flush(struct output *o);

#endif
