/* SPDX-License-Identifier: Apache-2.0 */
/* h1parse.h - HTTP/1.x heads and chunked bodies as pure functions over bytes. See h1parse.c. */
#ifndef CLOCHE_H1PARSE_H
#define CLOCHE_H1PARSE_H

#include "net/http.h"

/* Where a head ends. Zeroed at the start of each message; fed the same growing bytes again and again. */
struct h1scan {
  size_t line;  /* where the line being looked at begins */
  size_t seen;  /* bytes already searched */
  size_t lines; /* complete lines so far, the first included */
};

enum h1_side { H1_REQUEST, H1_RESPONSE };

/* Bytes of a complete head in `in` (its empty last line included), 0 when more must come, or a negative HTTP
 * status (-400, -414, -431) with a reason. The answer depends on the bytes only, not on how they were cut. */
ptrdiff_t h1_scan(struct h1scan *s, enum h1_side side, struct str in, const struct http_limits *limits,
                  const char **why);

enum h1_kind { H1_NONE, H1_LENGTH, H1_CHUNKED, H1_UNTIL_EOF };

/* What the head says about what follows it. */
struct h1_frame {
  enum h1_kind kind;
  uint64_t length; /* of H1_LENGTH */
  bool keep;       /* the connection may carry another message */
  bool expect;     /* Expect: 100-continue */
};

/* Parses what h1_scan found complete. hv holds at least lines - 1 headers. All slices point into `head` (or at
 * constants). 0, or a negative HTTP status with a reason. */
int h1_request(struct str head, struct http_head *out, struct http_header *hv, size_t cap, struct h1_frame *frame,
               const char **why);
/* bodyless: the request was a HEAD. Negative means the answer can't be trusted. */
int h1_response(struct str head, bool bodyless, struct http_head *out, struct http_header *hv, size_t cap,
                struct h1_frame *frame, const char **why);

/* A body as it is taken from the wire, whatever its framing. */
struct h1_body {
  enum h1_kind kind;
  bool done;
  uint8_t state;
  uint8_t digits;
  bool named;        /* inside a trailer's value */
  uint16_t line;     /* bytes of the extension or trailer line so far */
  uint32_t overhead; /* extension and trailer bytes of the whole body */
  uint64_t left;     /* of the length, or of the chunk */
  struct buf *kept;  /* set after h1_body_start: where trailer lines are kept, each ended by LF; NULL = nowhere */
};

#define H1_TRAILERS_MAX ((size_t)32 << 10) /* a buffer for them needs no more */
/* The trailers that a body kept, in the arena. Their number; none where memory is out. */
size_t h1_trailers(struct arena *a, struct str kept, struct http_header **out);

void h1_body_start(struct h1_body *b, const struct h1_frame *frame);

enum h1_step { H1_MORE, H1_DATA, H1_END };
/* Takes from the front of *in. H1_DATA: *data is a piece (never empty); H1_END: the body is complete and the rest of
 * *in belongs to the next message; H1_MORE: *in is used up. Negative HTTP status when the framing is broken. */
int h1_body_next(struct h1_body *b, struct str *in, struct str *data);

/* Fit to be written: a token, or a value free of CR, LF, NUL and other controls but HT. */
bool h1_token(struct str s);
bool h1_value(struct str s);
bool h1_target(struct str s);

#endif
