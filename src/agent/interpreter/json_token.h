/* SPDX-License-Identifier: Apache-2.0 */
/* json_token.h - JSON from a kernel carried over to a client token by token, never decoded into a tree.
 *
 * A result may be hundreds of megabytes and its number tokens must arrive to the letter, so values are checked and
 * copied as text. What comes out is always valid JSON in ASCII: bytes beyond it become \uXXXX, bytes that are
 * not UTF-8 become \ufffd, NaN and the infinities become null, white space between tokens goes. */
#ifndef CLOCHE_AGENT_INTERPRETER_JSON_TOKEN_H
#define CLOCHE_AGENT_INTERPRETER_JSON_TOKEN_H

#include "base/base.h"

#define TOKEN_MAX_DEPTH 512

/* Checks one value at the front of *in and moves *in behind it; *raw is the value's own text. 0 or -EINVAL. */
int token_take(struct str *in, struct str *raw);
/* Appends a checked value as ASCII. 0, or the buffer's failure. */
int token_copy(struct buf *out, struct str raw);

/* Walks an object: begin once, then next until it is 0 (end) or negative (broken). Keys come without their quotes,
 * still escaped; compare them with token_is. */
int token_object(struct str *in);
int token_member(struct str *in, struct str *key, struct str *value);

/* The inside of a string token, still escaped; false when the value is not a string. */
bool token_body(struct str raw, struct str *body);
/* True when an escaped body spells exactly that ASCII text. */
bool token_is(struct str body, const char *text);
bool token_true(struct str raw);
bool token_null(struct str raw); /* null or absent (no bytes) */
int token_int(struct str raw, int64_t *out);

/* Appends an escaped body as ASCII, still escaped and without quotes. */
int token_add_body(struct buf *out, struct str body);
/* Appends plain bytes (the output of a program) as an escaped ASCII body. */
int token_add_text(struct buf *out, struct str bytes);
/* The body's decoded bytes, UTF-8; lone surrogates become U+FFFD. */
int token_decode(struct str body, struct buf *out);
/* Without the first and the last character when both are ' or both are "; a lone quote gives nothing. */
struct str token_unquote(struct str body);
/* Longest prefix of an escaped ASCII body of at most max bytes that ends between two characters. */
size_t token_prefix(struct str body, size_t max);

#endif
