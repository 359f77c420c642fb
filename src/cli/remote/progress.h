/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - a bar for work that takes a while, on a terminal's standard error and nowhere else. It appears after
 * half a second and is wiped at the end. */
#ifndef CLOCHE_CLI_PROGRESS_H
#define CLOCHE_CLI_PROGRESS_H

#include "base/base.h"

struct progress {
  char name[64];
  int64_t began_us, shown_us;
  bool shown;
};

/* `name` may be a sandbox's: it is cleaned. */
void progress_begin(struct progress *p, struct str name);
/* Bytes of a transfer; total < 0: not known. As cloche_progress_fn, with the progress as `user`. */
int progress_bytes(int64_t done, int64_t total, void *user);
/* Steps of something else; total 0: not known. `doing` is what is done now, cleaned. */
void progress_steps(struct progress *p, uint64_t done, uint64_t total, struct str doing);
void progress_end(struct progress *p);

#endif
