/* SPDX-License-Identifier: Apache-2.0 */
/* audit_file.h - lines in files of bounded size and number: `<set>.jsonl` is written to, and becomes
 * `<set>-<time>.jsonl` when it is full; the oldest of the set go. What nobody with a key has asked for is a set of its
 * own, so that strangers can't crowd out the rest. Used by the role that writes and by the command that reads. */
#ifndef CLOCHE_AUDIT_FILE_H
#define CLOCHE_AUDIT_FILE_H

#include "base/base.h"

#define AUDIT_PROVEN    "audit"
#define AUDIT_REFUSED   "refused"
#define AUDIT_FILE_NAME 64

struct audit_file {
  const char *set;
  int dir; /* the caller's */
  int fd;  /* -1: not opened yet, or it could not be */
  uint64_t size;
};

/* Without it the first line opens the file. A last line that a crash left half written is closed, so that the next one
 * stands alone. */
int audit_file_open(struct audit_file *f, struct err *err);
/* `line` ends with a newline. -errno: nothing of it is in the file. */
int audit_file_add(struct audit_file *f, struct str line, uint64_t most, unsigned files);
void audit_file_close(struct audit_file *f);

void audit_file_current(const char *set, char out[AUDIT_FILE_NAME]);
/* Names of all files of a set, oldest first, the current one last; each is owned by the caller. */
struct audit_names {
  VEC(char *) names;
};
int audit_file_names(int dir, const char *set, struct audit_names *out);
void audit_names_free(struct audit_names *n);

#endif
