/* SPDX-License-Identifier: Apache-2.0 */
/* own_report.c - see own_report.h. */
#include "warden/core/own_report.h"

#include "warden/core/context.h"
#include "warden/core/worker_pool.h"
#include "wire/sizes.h"

#include <fcntl.h>
#include <sys/mman.h>

struct job {
  uv_work_t work;
  struct job *next; /* under way */
  struct warden *warden;
  struct origin origin;
  char team[UUID_SIZE];
  int (*make)(const struct warden_config *config, struct str input, struct buf *answer, struct err *err);
  struct buf input, answer;
  int result;
  struct err err;
};

static struct job *under_way;

static void run(uv_work_t *work)
{
  struct job *j = work->data;
  j->result = j->make(warden_config(j->warden), buf_str(&j->input), &j->answer, &j->err);
  if (!j->result && !str_starts(buf_str(&j->answer), STR("{")))
    j->result = err_set(&j->err, -EPROTO, "the report is not JSON");
}

static int in_memory(struct str text, struct err *err)
{
  int fd = memfd_create("report", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd >= 0 && !fd_write_all(fd, text.p, text.n) &&
      !fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
    return fd;
  err_errno(err, "keeping a report of %zu bytes", text.n);
  if (fd >= 0)
    close(fd);
  return err->code;
}

static void leave(struct job *j)
{
  for (struct job **at = &under_way; *at; at = &(*at)->next)
    if (*at == j) {
      *at = j->next;
      return;
    }
}

static void done(uv_work_t *work, int status)
{
  struct job *j = work->data;
  leave(j);
  cleanup_fd int fd = j->result ? -1 : in_memory(buf_str(&j->answer), &j->err);
  if (fd < 0) {
    reply_end(j->warden, j->origin, j->result ? j->result : j->err.code, &j->err);
  } else if (reply_possible(j->warden, j->origin)) {
    cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
    wire_begin(&out, WIRE_REPLY, j->origin.id, 0);
    wire_put_u64(&out, W_COUNT, j->answer.n);
    reply_send_on(j->origin.ipc, &out, fd);
  }
  buf_free(&j->input);
  buf_free(&j->answer);
  free(j);
}

static bool room(const char *team)
{
  size_t all = 0, own = 0;
  for (const struct job *j = under_way; j; j = j->next) {
    all++;
    own += !strcmp(j->team, team);
  }
  return all < OWN_REPORTS_MAX && own < OWN_REPORTS_TEAM;
}

int own_report_run(struct warden *w, const struct own_report *r, struct err *err)
{
  if (!room(r->team))
    return err_set(err, -EDQUOT, "%d reports of one team at once, %d of all: try again when one is done",
                   OWN_REPORTS_TEAM, OWN_REPORTS_MAX);
  struct job *j = xcalloc(1, sizeof(*j));
  *j = (struct job){.warden = w, .origin = r->origin, .make = r->make, .err = ERR_NONE, .next = under_way};
  str_copyz(str_of(r->team), j->team, sizeof(j->team));
  j->input = BUF_INIT(MAX(r->input.n, (size_t)1));
  buf_adds(&j->input, r->input);
  j->answer = BUF_INIT(r->answer_max);
  j->work.data = j;
  under_way = j;
  worker_pool_queue(w, j->team, &j->work, run, done);
  return 0;
}
