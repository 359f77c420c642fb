/* build_final.c - the end of a build: the start command runs in a box of the finished layers until the ready command
 * succeeds; then the box is written to disk as it stands, and sandboxes of the template begin there. */
#include "jail/checkpoint.h"
#include "jail/commit.h"
#include "warden/build_box.h"
#include "warden/build_state.h"
#include "warden/build_step.h"
#include "warden/image.h"
#include <stdio.h>

#define READY_DEFAULT "sleep 20"
#define READY_LIMIT_S 600
#define ASK_FIRST_MS  200
#define ASK_MOST_MS   2000

struct final {
  struct build_run *run;
  struct build_box box;
  struct build_order start, ready;
  bool started;
};

static int start_failed(struct final *f, struct err *err)
{
  return err_set(err, -EREMOTEIO, "the start command '%.200s' failed: exit status %d", f->run->state.start, f->start.status);
}

static struct build_order *beside(struct final *f)
{
  return f->started ? &f->start : NULL;
}

/* Listens to the start command for a while. */
static int pause_for(struct final *f, unsigned ms, struct err *err)
{
  int64_t until = clock_mono_us() + ms * 1000LL;
  int r = 0;
  while (!r && clock_mono_us() < until) {
    r = build_box_wait(&f->box, NULL, beside(f), err);
    if (!r && f->started && f->start.over && f->start.status)
      r = start_failed(f, err);
  }
  return r;
}

/* 1: ready; 0: not yet; negative: it can't be any more. */
static int ask_once(struct final *f, const char *command, struct err *err)
{
  const char *const argv[] = {"/bin/bash", "-l", "-c", command, NULL};
  f->ready = (struct build_order){.user = f->run->state.user, .cwd = f->run->state.workdir, .argv = argv, .input = -1, .prefix = "[ready]"};
  int r = build_box_begin(&f->box, &f->ready, err);
  while (!r && !f->ready.over) {
    r = build_box_wait(&f->box, &f->ready, f->start.over ? NULL : beside(f), err);
    if (!r && f->started && f->start.over && f->start.status)
      r = start_failed(f, err);
  }
  build_order_free(&f->ready);
  return r ? r : f->ready.status == 0;
}

static int wait_ready(struct final *f, const char *command, struct err *err)
{
  int64_t until = clock_mono_us() + READY_LIMIT_S * 1000000LL;
  build_say(f->run, LOG_INFO, "Waiting for template to be ready: %s", command);
  for (unsigned ms = ASK_FIRST_MS;; ms = MIN(2 * ms, ASK_MOST_MS)) {
    int r = ask_once(f, command, err);
    if (r < 0)
      return r;
    if (r > 0)
      break;
    if (clock_mono_us() > until)
      return err_set(err, -ETIME, "the ready command '%.200s' did not succeed within %d s", command, READY_LIMIT_S);
    r = pause_for(f, ms, err);
    if (r)
      return r;
  }
  build_say(f->run, LOG_INFO, "Template is ready");
  return 0;
}

static int start(struct final *f, struct err *err)
{
  struct build_state *st = &f->run->state;
  if (!st->start)
    return 0;
  const char *const argv[] = {"/bin/bash", "-l", "-c", st->start, NULL};
  f->start = (struct build_order){.user = st->user, .cwd = st->workdir, .argv = argv, .input = -1, .prefix = "[start]"};
  build_say(f->run, LOG_INFO, "Running start command");
  int r = build_box_begin(&f->box, &f->start, err);
  f->started = !r;
  return r ? err_wrap(err, "the start command") : pause_for(f, ASK_FIRST_MS, err);
}

/* ---- the ready box as an image ---- */

static int dump(struct final *f, const char *image, struct err *err)
{
  struct build_run *run = f->run;
  struct warden *w = run->warden;
  int r = build_box_release(&f->box, err);
  r = r ? r : jail_dump(&w->criu, &f->box.spec, &f->box.jail, image, err);
  if (r)
    return r;
  snprintf(run->image_layer, sizeof(run->image_layer), "%s/layers/%s", w->config->data, run->id);
  r = jail_commit(f->box.dir, w->config->id_base + run->slot * JAIL_IDS, run->image_layer, err); /* it is frozen now */
  if (r)
    jail_image_remove(image, NULL);
  return r;
}

/* A host that can't, or a program that can't be held, costs speed and nothing else: the command is begun at each birth then. */
static void keep_image(struct final *f)
{
  struct build_run *run = f->run;
  struct warden *w = run->warden;
  struct err err = ERR_NONE;
  char path[1024];
  if (!w->images_on)
    err_set(&err, -ENOTSUP, "%s", w->images_why);
  else {
    image_path(w, run->id, path);
    dump(f, path, &err);
  }
  if (err.code) {
    build_say(run, LOG_WARN, "The running template can't be kept in memory (%s): its start command will run at the start of each sandbox", err.msg);
    return;
  }
  snprintf(run->image, sizeof(run->image), "%s", run->id);
  snprintf(run->secret, sizeof(run->secret), "%s", f->box.secret);
  run->image_bytes = jail_image_bytes(path);
  build_say(run, LOG_INFO, "[finalize] The running template is kept in memory (%llu MB)",
            (unsigned long long)(run->image_bytes + (1 << 20) - 1) >> 20);
}

int build_finalize(struct build_run *run, struct err *err)
{
  struct build_state *st = &run->state;
  struct final f = {.run = run};
  if (!st->start && !st->ready)
    return 0;
  cleanup_buf struct buf config = BUF_INIT(4 << 20);
  build_state_config(st, false, &config);
  int r = build_box_open(&f.box, run, buf_z(&st->layers), buf_z(&config), err);
  r = r ? r : start(&f, err);
  r = r ? r : wait_ready(&f, st->ready ? st->ready : READY_DEFAULT, err);
  if (!r && st->start)
    keep_image(&f);
  build_order_free(&f.start);
  build_box_remove(&f.box);
  if (r && run->recipe.debug && r != -ECANCELED && r != -ETIMEDOUT) {
    build_say(run, LOG_ERROR, "%s; the build goes on because debugging was asked for", err->msg);
    *err = ERR_NONE;
    r = 0;
  }
  return r;
}
