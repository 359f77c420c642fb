/* SPDX-License-Identifier: Apache-2.0 */
/* audit_file.h - lines in files of bounded size and number: `audit.jsonl` is written to, and becomes
 * `audit-<time>.jsonl` when it is full; the oldest of those go. Used by the role that writes and by the command that
 * reads. */
#ifndef CLOCHE_AUDIT_FILE_H
#define CLOCHE_AUDIT_FILE_H

#include "base/base.h"

#define AUDIT_FILE      "audit.jsonl"
#define AUDIT_FILE_NAME 64

struct audit_file {
  int dir, fd;
  uint64_t size;
};

/* Takes the directory's descriptor. A last line that a crash left half written is closed, so that the next one stands
 * alone. */
int audit_file_open(struct audit_file *f, int dir, struct err *err);
/* `line` ends with a newline. -errno: nothing of it is in the file. */
int audit_file_add(struct audit_file *f, struct str line, uint64_t most, unsigned files);
void audit_file_close(struct audit_file *f);

/* Names of all files, oldest first, the current one last; each is owned by the caller. */
struct audit_names {
  VEC(char *) names;
};
int audit_file_names(int dir, struct audit_names *out);
void audit_names_free(struct audit_names *n);

#endif
