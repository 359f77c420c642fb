/* SPDX-License-Identifier: Apache-2.0 */
/* own_report.h - answers that another process of this program works out, as long as that takes: it is run off the loop
 * with an end that comes in time, and what it prints is the answer, JSON. */
#ifndef CLOCHE_WARDEN_CORE_OWN_REPORT_H
#define CLOCHE_WARDEN_CORE_OWN_REPORT_H

#include "base/base.h"
#include "warden/core/reply.h"

#define OWN_REPORTS_MAX  4 /* at once, */
#define OWN_REPORTS_TEAM 2 /* of one team */

struct own_report {
  const char *team;        /* "" = the server itself */
  const char *const *argv; /* constant; argv[0] is "/proc/self/exe" */
  const char *last;        /* one more argument behind them; may be NULL; copied */
  struct str input;        /* copied */
  size_t answer_max;
  unsigned seconds;
  struct origin origin;
};

/* The reply is a descriptor of memory that holds the JSON, with W_COUNT bytes, or an error. Negative, and answered by
 * nobody: as many as may are under way (-EDQUOT). */
int own_report_run(struct warden *w, const struct own_report *r, struct err *err);

#endif
