/* SPDX-License-Identifier: Apache-2.0 */
/* own_report.h - answers that take their time: another process of this program works them out, off the loop, and what
 * it prints is the answer, JSON. */
#ifndef CLOCHE_WARDEN_CORE_OWN_REPORT_H
#define CLOCHE_WARDEN_CORE_OWN_REPORT_H

#include "base/base.h"
#include "warden/core/reply.h"

#define OWN_REPORTS_MAX  4 /* at once, */
#define OWN_REPORTS_TEAM 2 /* of one team */

struct warden_config;

struct own_report {
  const char *team; /* "" = the server itself */
  struct str input; /* copied */
  size_t answer_max;
  struct origin origin;
  /* On a thread: runs the process, with an end that comes in time, and takes what it prints. */
  int (*make)(const struct warden_config *config, struct str input, struct buf *answer, struct err *err);
};

/* The reply is a descriptor of memory that holds the JSON, with W_COUNT bytes, or an error. Negative, and answered by
 * nobody: as many as may are under way (-EDQUOT). */
int own_report_run(struct warden *w, const struct own_report *r, struct err *err);

#endif
