/* SPDX-License-Identifier: Apache-2.0 */
/* build_diff.h - what differs between two builds: a process of its own walks both trees, which strangers filled
 * (src/cli/template_diff.c). */
#ifndef CLOCHE_WARDEN_BUILD_BUILD_DIFF_H
#define CLOCHE_WARDEN_BUILD_BUILD_DIFF_H

#include "warden/core/own_report.h"

#define BUILD_DIFF_COMMAND "compare-builds"  /* the warden's own, not for people */
#define BUILD_DIFF_MAX     ((size_t)4 << 20) /* bytes of the answer */
#define BUILD_DIFF_SECONDS 60

struct build;

int build_diff_main(void); /* that process */
/* Answers `origin` with the differences as JSON (own_report.h). Negative: answered by nobody, err says why. */
int build_diff(struct warden *w, struct origin origin, const struct build *from, const struct build *to,
               struct err *err);

#endif
