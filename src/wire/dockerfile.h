/* SPDX-License-Identifier: Apache-2.0 */
/* dockerfile.h - a Dockerfile as the steps of a template, by the rules the SDKs read one with: FROM; RUN, COPY, ADD,
 * ENV, ARG, WORKDIR, USER; CMD and ENTRYPOINT are the start command. It begins as root in /, and where it never says
 * who and where, the template is `user` in /home/user.
 *
 * Beyond them: several stages, ARG before FROM, and RUN with documents (<<). A stage has the name "stage-NAME" or,
 * without one, "stage-NUMBER"; one that begins with another goes on where that ended. */
#ifndef CLOCHE_WIRE_DOCKERFILE_H
#define CLOCHE_WIRE_DOCKERFILE_H

#include "base/base.h"

#define DOCKERFILE_MAX ((size_t)1 << 20) /* bytes of a text that is read at all */

struct dockerfile_copy {
  struct str source, target, owner, mode; /* "": not said */
  struct str stage;                       /* the source lies in this one; "": in the directory of files */
  size_t line;
};

struct dockerfile_ops {
  int (*from)(void *arg, struct str base, bool stage,
              struct err *err); /* stage: base is the name of one that has ended */
  int (*step)(void *arg, const char *type, const struct str *args, size_t n, struct err *err);
  int (*copy)(void *arg, const struct dockerfile_copy *copy, struct err *err);
  int (*start)(void *arg, struct str command, struct err *err); /* "": none, after all */
  /* What was told since the last FROM is a stage of this name; the next FROM stands on that line. */
  int (*stage)(void *arg, struct str name, size_t line, struct err *err);
};

/* Errors name the line. Takes time in proportion to the text, unless that has many stages. */
int dockerfile_read(struct str text, const struct dockerfile_ops *ops, void *arg, struct err *err);

#endif
