/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_run.c - see doctor_run.h. */
#include "warden/core/doctor_run.h"

#include "warden/core/helper_proc.h"
#include <inttypes.h>
#include <stdio.h>

static struct str last_line(struct str text)
{
  text = str_trim(text);
  for (size_t i = text.n; i > 0; i--)
    if (text.p[i - 1] == '\n')
      return str_skip(text, i);
  return text;
}

/* Status 1 with a report is one, too: no box can be made here. */
int doctor_run(const struct warden_config *config, struct buf *json, struct err *err)
{
  char id_base[16], reserve[24], boxes[16];
  snprintf(id_base, sizeof(id_base), "%" PRIu32, config->id_base);
  snprintf(reserve, sizeof(reserve), "%u", config->disk_creates_mb);
  snprintf(boxes, sizeof(boxes), "%u", config->boxes_max);
  const char *const argv[] = {"/proc/self/exe",
                              "doctor",
                              "--json",
                              "--config", /* what is in force follows */
                              "none",
                              "--data",
                              config->data,
                              "--runtime",
                              config->runtime,
                              "--criu",
                              config->criu,
                              "--net_pool",
                              config->net_pool,
                              "--id_base",
                              id_base,
                              "--disk_creates_mb",
                              reserve,
                              "--boxes_max",
                              boxes,
                              "--internet",
                              config->internet ? "1" : "0",
                              NULL};
  cleanup_buf struct buf answer = BUF_INIT(DOCTOR_RUN_JSON_MAX);
  int r = helper_proc_run(
      &(struct helper_proc){.argv = argv, .work = -1, .source = -1, .seconds = DOCTOR_RUN_S, .answer = &answer}, err);
  struct str text = last_line(buf_str(&answer)); /* what it logged comes before */
  if (!str_starts(text, STR("{\"version\":")) || text.p[text.n - 1] != '}')
    return r ? err_wrap(err, "cloche doctor") : err_set(err, -EIO, "cloche doctor printed no report");
  return buf_adds(json, text) ? err_set(err, -E2BIG, "the report of cloche doctor is too long") : 0;
}
