/* SPDX-License-Identifier: Apache-2.0 */
/* build_run.c - see build_run.h. */
#include "warden/build/build_run.h"
#include "warden/core/volume_mounts.h"

#include "warden/core/context.h"
#include <sys/eventfd.h>

void build_say(struct build_run *run, enum log_level level, const char *fmt, ...)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  va_list ap;
  va_start(ap, fmt);
  buf_vaddf(&b, fmt, ap);
  va_end(ap);
  buildlog_add(&run->log, level, run->step, buf_str(&b));
}

int build_stopped(struct build_run *run, struct err *err)
{
  if (atomic_load(&run->cancelled))
    return err_set(err, -ECANCELED, "%s", run->why);
  if (clock_mono_us() > run->deadline_us)
    return err_set(err, -ETIMEDOUT, "the build took longer than %u s", warden_config(run->warden)->build_seconds);
  return 0;
}

void build_ask(struct build_run *run, void (*fn)(struct build_run *run, void *arg), void *arg)
{
  run->request_arg = arg;
  run->request = fn;
  uv_async_send(&run->done);
  uv_sem_wait(&run->answered);
}

void build_run_cancel(struct build_run *run, const char *why)
{
  if (!atomic_load(&run->cancelled))
    run->why = why;
  atomic_store(&run->cancelled, true);
  eventfd_write(run->wake, 1);
}

void build_run_free(struct build_run *run)
{
  buildlog_close(&run->log);
  uv_sem_destroy(&run->answered);
  build_state_free(&run->state);
  if (run->wake >= 0)
    close(run->wake);
  if (run->packed.p)
    explicit_bzero((void *)run->packed.p, run->packed.n); /* it may hold a registry's password */
  free((void *)run->packed.p);
  free(run->base_layers);
  free(run->base_config);
  free(run->base_name);
  if (run->mounts)
    volume_mounts_release(run->warden, run->mounts);
  free(run->mounts);
  arena_free(&run->arena);
  free(run);
}
