/* SPDX-License-Identifier: Apache-2.0 */
/* interp_request.h - request bodies of the code-interpreter API, checked field by field.
 *
 * null, absent and (for names) empty all mean "not given". Errors have the form clients know: a list of
 * {type, loc, msg, input}. */
#ifndef CLOCHE_AGENT_INTERPRETER_INTERP_REQUEST_H
#define CLOCHE_AGENT_INTERPRETER_INTERP_REQUEST_H

#include "base/base.h"

struct execute_request {
  struct str code;
  struct str context_id, language; /* p is NULL when not given */
  const struct json *env;          /* NULL when not given */
};

struct context_request {
  struct str language, cwd; /* p is NULL when not given */
};

struct interrupt_request {
  struct str context_id, language, execution_id; /* p is NULL when not given */
};

/* 0, or -EINVAL with the whole 422 body appended to *wrong. Values live in the arena and in the text. */
int execute_request_read(struct arena *a, struct str text, struct execute_request *r, struct buf *wrong);
int context_request_read(struct arena *a, struct str text, struct context_request *r, struct buf *wrong);
/* The body may be empty. */
int interrupt_request_read(struct arena *a, struct str text, struct interrupt_request *r, struct buf *wrong);

#endif
