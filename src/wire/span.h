/* SPDX-License-Identifier: Apache-2.0 */
/* span.h - one traced request, or a build, as a gate or the warden tells the exporter (WIRE_SPAN): its place in a
 * trace, when it began and ended, and the phases in between. Also the header `traceparent` of W3C Trace Context,
 * version 00. */
#ifndef CLOCHE_WIRE_SPAN_H
#define CLOCHE_WIRE_SPAN_H

#include "base/base.h"

#define SPAN_PHASES   8
#define SPAN_TEXT_MAX 128 /* bytes that are kept of each text */

struct span_context {
  uint8_t trace[16], parent[8]; /* parent: all zeros = none */
  bool sampled;
};

/* -EINVAL: it is none; the context is left alone. Later versions are read as far as version 00 goes. */
int span_context_read(struct str traceparent, struct span_context *out);

struct span_phase {
  const char *name; /* of a sender: a constant */
  struct str text;  /* of a reader: a slice of the packet */
  int64_t from_us, to_us;
};

struct span {
  struct span_context context;
  uint8_t id[8];
  struct str name;             /* "create", "cell", "pause", ... */
  struct str route, box, team; /* what was asked for, of whom */
  struct str build;            /* that it is about; empty = none */
  unsigned status;             /* of the answer, or what it would have been; 0 = none */
  int64_t from_us, to_us;      /* wall clock */
  struct span_phase phases[SPAN_PHASES];
  size_t nphases;
};

/* A phase that did not happen (to before from, or either 0) is left out. */
void span_phase_add(struct span *s, const char *name, int64_t from_us, int64_t to_us);
/* Adds one offset to every time, so that phases stay inside their span when the times change clocks. */
void span_shift(struct span *s, int64_t by_us);
void span_pack(struct buf *b, const struct span *s);
int span_read(struct str packet, struct span *s); /* -EINVAL */

#endif
