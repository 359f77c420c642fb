/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - answers that the warden has worked out by another process and hands over in memory: what differs between
 * two builds of a template, and what the doctor says about the machine. */
#include "gate/api/api.h"

#define REPORT_MAX ((size_t)4 << 20)

/* Sealed memory: reading it waits for no disk. */
static void told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  cleanup_fd int fd = reply->fd;
  cleanup_buf struct buf b = BUF_INIT(REPORT_MAX);
  if (api_refused(r, reply))
    return;
  size_t n = (size_t)MIN(wire_u64(reply->packet, W_COUNT, 0), (uint64_t)REPORT_MAX);
  char *p = fd >= 0 && n && !buf_reserve(&b, n) ? b.p : NULL;
  if (p && pread(fd, p, n, 0) == (ssize_t)n)
    api_json(r, 200, str_make(p, n));
  else
    api_error(r, 500, "Failed to %s: the report was lost", r->entry->action);
}

void build_compare(struct req *r)
{
  struct str from = api_query(r, "from");
  if (!uuid_valid(from) || !uuid_valid(r->second)) {
    api_error(r, 400, "'from' and the build of the path must be IDs of builds; GET /templates/{id} lists them");
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(2048);
  wire_begin(&b, WIRE_BUILD_DIFF, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put(&b, W_REF, r->id);
  wire_put(&b, W_ID, from);
  wire_put(&b, W_BUILD, r->second);
  api_call_warden(r, &b, NULL, told);
}

void admin_doctor(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(256);
  wire_begin(&b, WIRE_DOCTOR, 0, 0);
  api_call_warden(r, &b, NULL, told);
}
