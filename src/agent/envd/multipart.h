/* SPDX-License-Identifier: Apache-2.0 */
/* multipart.h - a multipart/form-data body, read piece by piece in constant memory.
 *
 * Pieces may be cut anywhere. The callbacks get each part's names, its bytes and its end; a negative answer stops the
 * parser, which hands that number on. Malformed input gives -EINVAL. */
#ifndef CLOCHE_AGENT_ENVD_MULTIPART_H
#define CLOCHE_AGENT_ENVD_MULTIPART_H

#include "base/base.h"

#define MULTIPART_BOUNDARY_MAX 200
#define MULTIPART_HEAD_MAX     (16 << 10)

struct multipart_ops {
  int (*begin)(void *arg, struct str name, struct str filename, bool has_filename);
  int (*data)(void *arg, struct str bytes);
  int (*end)(void *arg);
};

enum multipart_state { MP_PREAMBLE, MP_BODY, MP_LINE, MP_HEAD, MP_EPILOGUE };

struct multipart {
  const struct multipart_ops *ops;
  void *arg;
  enum multipart_state state;
  bool in_part;
  char delimiter[MULTIPART_BOUNDARY_MAX + 5]; /* CR LF - - boundary */
  size_t dlen, matched;                       /* how much of it stands at the end of what was seen */
  struct buf line, head;
};

/* content_type: the request's header value with its boundary parameter. -EINVAL when it has none. */
int multipart_init(struct multipart *m, struct str content_type, const struct multipart_ops *ops, void *arg);
int multipart_feed(struct multipart *m, struct str chunk);
int multipart_finish(struct multipart *m); /* -EINVAL when the closing boundary has not come */
void multipart_free(struct multipart *m);

/* Value of a parameter (`name`, `filename`, `boundary`) of a header value; quotes and their escapes undone, the
 * extended form `filename*=utf-8''...` preferred. 1 found, 0 absent, negative on a broken one. */
int multipart_param(struct str value, const char *name, struct buf *out);

#endif
