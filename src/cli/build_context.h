/* SPDX-License-Identifier: Apache-2.0 */
/* build_context.h - the directory that COPY steps take their files from: which of them a pattern means, what
 * .dockerignore leaves out, their fingerprint and their archive. Fingerprints are those the SDKs compute, so that both
 * find each other's uploads. */
#ifndef CLOCHE_CLI_BUILD_CONTEXT_H
#define CLOCHE_CLI_BUILD_CONTEXT_H

#include "base/base.h"

struct context_rule {
  char *pattern; /* owned */
  bool keeps;    /* it began with '!' */
};

struct context {
  int top; /* the directory; -1: not open */
  char path[PATH_MAX];
  VEC(struct context_rule) rules;
};

struct context_files {
  VEC(char *) paths; /* relative, sorted; owned */
};

int context_open(struct context *c, const char *path, struct err *err);
void context_close(struct context *c);

/* Files, links and directories that `source` means (*, ?, [], ** and whole directories). -ENOENT when there are none.
 */
int context_find(const struct context *c, struct str source, struct context_files *out, struct err *err);
int context_hash(const struct context *c, const struct context_files *f, struct str source, struct str target,
                 char hex[65], struct err *err);
int context_pack(const struct context *c, const struct context_files *f, int fd, uint64_t *bytes, struct err *err);
void context_files_free(struct context_files *f);
#define cleanup_files __attribute__((cleanup(context_files_free)))

/* Whether a pattern means a path: by segments, ** for any number of them. */
bool context_match(const char *pattern, const char *path);

#endif
