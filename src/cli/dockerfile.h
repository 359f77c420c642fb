/* dockerfile.h - a Dockerfile as the steps of a template, by the rules the SDKs read one with: one FROM; RUN, COPY, ADD, ENV,
 * ARG, WORKDIR, USER; CMD and ENTRYPOINT are the start command. It begins as root in /, and where it never says who and where,
 * the template is `user` in /home/user. */
#ifndef CLOCHE_DOCKERFILE_H
#define CLOCHE_DOCKERFILE_H

#include "base/base.h"

struct dockerfile_ops {
  int (*from)(void *arg, struct str image, struct err *err);
  int (*step)(void *arg, const char *type, const struct str *args, size_t n, struct err *err);
  int (*copy)(void *arg, struct str source, struct str target, struct str owner, struct str mode, struct err *err);
  int (*start)(void *arg, struct str command, struct err *err);
};

/* Errors name the line. */
int dockerfile_read(struct str text, const struct dockerfile_ops *ops, void *arg, struct err *err);

#endif
