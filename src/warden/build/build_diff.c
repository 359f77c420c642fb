/* SPDX-License-Identifier: Apache-2.0 */
/* build_diff.c - see build_diff.h. */
#include "warden/build/build_diff.h"

#include "warden/core/helper_proc.h"
#include "warden/db/catalog.h"

static int make(const struct warden_config *config, struct str input, struct buf *answer, struct err *err)
{
  static const char *const argv[] = {"/proc/self/exe", BUILD_DIFF_COMMAND, NULL};
  struct helper_proc c = {
      .argv = argv, .work = -1, .source = -1, .seconds = BUILD_DIFF_SECONDS, .input = input, .answer = answer};
  return helper_proc_run(&c, err);
}

int build_diff(struct warden *w, struct origin origin, const struct build *from, const struct build *to,
               struct err *err)
{
  cleanup_buf struct buf layers = BUF_INIT((size_t)1 << 20);
  buf_adds(&layers, str_trim(str_of(from->row.layers)));
  buf_addz(&layers, "\n\n");
  buf_adds(&layers, str_trim(str_of(to->row.layers)));
  struct own_report r = {.team = to->of->row.team,
                         .input = buf_str(&layers),
                         .answer_max = BUILD_DIFF_MAX,
                         .origin = origin,
                         .make = make};
  return own_report_run(w, &r, err);
}
