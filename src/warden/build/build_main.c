/* SPDX-License-Identifier: Apache-2.0 */
/* build_main.c - see build_main.h. */
#include "warden/build/build_main.h"

#include "jail/jail.h"
#include "warden/build/build_run.h"
#include "warden/build/build_step.h"
#include "warden/build/source.h"
#include "warden/core/storage_quota.h"
#include "warden/core/context.h"
#include <stdio.h>

/* ---- the base ---- */

static void count_layers(struct build_state *s)
{
  s->nlayers = 0;
  for (size_t i = 0; i < s->layers.n; i++)
    s->nlayers += s->layers.p[i] == '\n';
}

static int from_template(struct build_run *run, struct err *err)
{
  struct build_state *s = &run->state;
  struct build_hash h;
  buf_addz(&s->layers, run->base_layers);
  count_layers(s);
  build_hash_begin(&h, "template 1");
  build_hash_add(&h, str_of(run->team));
  build_hash_add(&h, str_of(run->base_layers));
  build_hash_add(&h, str_of(run->base_config));
  build_hash_end(&h, s->key);
  build_say(run, LOG_INFO, "[base] FROM TEMPLATE %s [%.12s]", run->base_name, s->key);
  return build_state_read(s, str_of(run->base_config), err);
}

static void source_line(void *arg, enum log_level level, const char *line)
{
  build_say(arg, level, "[base] %s", line);
}

static int from_image(struct build_run *run, struct err *err)
{
  struct build_state *s = &run->state;
  struct warden *w = run->warden;
  struct build_hash h;
  struct source_base base = {0};
  struct source_spec spec = {.rules = &warden_config(w)->source,
                             .data = warden_config(w)->data,
                             .instance = warden_instance(w),
                             .runtime = warden_runtime(w),
                             .team = run->team,
                             .id_base = warden_config(w)->id_base + run->slot * JAIL_IDS,
                             .image = run->recipe.image,
                             .registry = run->recipe.registry,
                             .force = run->recipe.force,
                             .deadline_us = run->deadline_us,
                             .cancelled = &run->cancelled,
                             .say = source_line,
                             .arg = run,
                             .left = &run->left};
  build_say(run, LOG_INFO, "[base] FROM " STR_FMT, STR_ARG(run->recipe.image));
  int r = source_fetch(&spec, &base, err);
  if (r && build_stopped(run, err)) /* a timeout is reported as the build's own */
    r = err->code;
  if (!r) {
    build_hash_begin(&h, "image 1");
    build_hash_add(&h, str_of(run->team));
    build_hash_add(&h, str_of(base.key));
    build_hash_add(&h, buf_str(&base.config));
    build_hash_end(&h, s->key);
    buf_adds(&s->layers, buf_str(&base.layers));
    count_layers(s);
    r = build_state_read(s, buf_str(&base.config), err);
  }
  r = r ? r : build_settle(run, err);
  r = r ? r : build_state_exported(s, buf_str(&base.config), err); /* a template that was exported is what it was */
  source_base_free(&base);
  return r;
}

/* ---- the whole ---- */

static void commands(struct build_run *run)
{
  if (run->recipe.has_start) {
    build_state_text(&run->state.start, run->recipe.start);
    build_state_own_start(&run->state);
  }
  if (run->recipe.has_ready)
    build_state_text(&run->state.ready, run->recipe.ready);
}

static int work(struct build_run *run, struct err *err)
{
  int r = build_stopped(run, err);
  build_say(run, LOG_INFO, "Building template %s/%s", run->template_id, run->id);
  snprintf(run->step, sizeof(run->step), "base");
  if (!r && run->base_err.code) {
    *err = run->base_err;
    return err->code;
  }
  r = r ? r : run->base_layers ? from_template(run, err) : from_image(run, err);
  run->based_us = clock_mono_us();
  for (size_t i = 0; !r && i < run->recipe.nsteps; i++) {
    snprintf(run->step, sizeof(run->step), "%zu", i + 1);
    r = build_stopped(run, err);
    r = r ? r : storage_room(run->warden, ROOM_FOR_PAUSE, err); /* each step keeps a layer as large as a disk */
    r = r ? r : build_step(run, i, err);
  }
  run->stepped_us = clock_mono_us();
  if (r)
    return r;
  snprintf(run->step, sizeof(run->step), "finalize");
  commands(run);
  return build_finalize(run, err);
}

void build_run_main(void *arg)
{
  struct build_run *run = arg;
  run->begun_us = clock_mono_us();
  run->deadline_us = run->begun_us + (int64_t)warden_config(run->warden)->build_seconds * 1000000;
  run->fresh = run->recipe.force;
  buf_init(&run->state.layers, 1 << 20);
  run->result = work(run, &run->err);
  double took = (double)(clock_mono_us() - run->begun_us) / 1e6;
  if (run->result)
    build_say(run, LOG_ERROR, "Build failed: %s", run->err.msg);
  else
    build_say(run, LOG_INFO, "Build finished, took %.2fs", took);
  atomic_store(&run->over, true);
  uv_async_send(&run->done);
}
