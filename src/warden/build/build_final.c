/* SPDX-License-Identifier: Apache-2.0 */
/* build_final.c - the end of a build: the start command runs in a box of the finished layers until the ready command
 * succeeds; then the box is written to disk as it stands, and sandboxes of the template begin there. */
#include "jail/checkpoint/checkpoint.h"
#include "jail/fs/layer_commit.h"
#include "warden/build/build_box.h"
#include "warden/build/build_keep.h"
#include "warden/build/build_state.h"
#include "warden/build/build_step.h"
#include "warden/core/checkpoint_store.h"
#include "warden/warm/zygote.h"
#include "warden/core/context.h"
#include "wire/sizes.h"
#include <poll.h>
#include <stdio.h>

#define READY_DEFAULT "sleep 20"
#define READY_LIMIT_S 600
#define ASK_FIRST_MS  10
#define ASK_MOST_MS   1000
#define STAND_MS      200 /* a start command that fails does so within it */
#define LOAD_LIMIT_S  20  /* for the template's Python; what takes longer is loaded with the first sandbox */
#define LOAD_LOOK_MS  10

struct final {
  struct build_run *run;
  struct build_box box;
  struct build_cmd start, ready;
  int64_t started_us;
  bool started;
};

static int start_failed(struct final *f, struct err *err)
{
  return err_set(err, -EREMOTEIO, "the start command '%.200s' failed: exit status %d", f->run->state.start,
                 f->start.status);
}

static struct build_cmd *beside(struct final *f)
{
  return f->started ? &f->start : NULL;
}

/* Listens to the start command until then. */
static int pause_until(struct final *f, int64_t until_us, struct err *err)
{
  while (clock_mono_us() < until_us) {
    bool over = f->started && f->start.over;
    int r = build_box_listen(&f->box, over ? NULL : beside(f), until_us, err);
    if (!r && f->started && f->start.over && f->start.status)
      r = start_failed(f, err);
    if (r)
      return r;
  }
  return 0;
}

/* What the start and ready commands run in: an inherited one in the context of the template it was given in. */
static void set_context(const struct build_state *st, struct build_cmd *o)
{
  const struct build_context *c = st->inherited;
  o->user = c ? c->user : st->user;
  o->cwd = c ? c->workdir : st->workdir;
  o->env = c ? &c->env : NULL;
}

/* 1: ready; 0: not yet; negative: it can't be any more. */
static int ask_once(struct final *f, const char *command, struct err *err)
{
  const char *const argv[] = {"/bin/bash", "-l", "-c", command, NULL};
  f->ready = (struct build_cmd){.argv = argv, .input = -1, .prefix = "[ready]"};
  set_context(&f->run->state, &f->ready);
  int r = build_box_begin(&f->box, &f->ready, err);
  while (!r && !f->ready.over) {
    r = build_box_wait(&f->box, &f->ready, f->start.over ? NULL : beside(f), err);
    if (!r && f->started && f->start.over && f->start.status)
      r = start_failed(f, err);
  }
  build_cmd_free(&f->ready);
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
    if (r > 0) {
      r = f->started ? pause_until(f, f->started_us + STAND_MS * 1000LL, err) : 0;
      if (r)
        return r;
      break;
    }
    if (clock_mono_us() > until)
      return err_set(err, -ETIME, "the ready command '%.200s' did not succeed within %d s", command, READY_LIMIT_S);
    r = pause_until(f, clock_mono_us() + ms * 1000LL, err);
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
  f->start = (struct build_cmd){.argv = argv, .input = -1, .prefix = "[start]"};
  set_context(st, &f->start);
  build_say(f->run, LOG_INFO, "Running start command");
  int r = build_box_begin(&f->box, &f->start, err);
  f->started = !r;
  f->started_us = clock_mono_us();
  return r ? err_wrap(err, "the start command") : 0;
}

/* ---- the ready box as a checkpoint ---- */

static int dump(struct final *f, const char *path, struct err *err)
{
  struct build_run *run = f->run;
  struct warden *w = run->warden;
  int r = build_box_release(&f->box, err);
  r = r ? r : checkpoint_dump(checkpoint_criu(w), &f->box.spec, &f->box.jail, path, err);
  if (r)
    return r;
  snprintf(run->checkpoint_layer, sizeof(run->checkpoint_layer), "%s/layers/%s", warden_config(w)->data, run->id);
  r = jail_commit(f->box.dir, warden_config(w)->id_base + run->slot * JAIL_IDS, run->checkpoint_layer,
                  err); /* it is frozen now */
  if (r)
    jail_checkpoint_remove(path, NULL);
  else
    run->checkpoint_layer_bytes = jail_layer_bytes(run->checkpoint_layer);
  return r;
}

/* A host that can't, or a program that can't be held, costs speed and nothing else: the command is started at each
 * launch then. */
static void keep_checkpoint(struct final *f)
{
  struct build_run *run = f->run;
  struct warden *w = run->warden;
  struct err err = ERR_NONE;
  char path[DATA_PATH_SIZE];
  if (!checkpoints_enabled(w))
    err_set(&err, -ENOTSUP, "%s", checkpoints_disabled_why(w));
  else {
    checkpoint_path(w, run->id, path);
    dump(f, path, &err);
  }
  if (err.code) {
    build_say(
        run, LOG_WARN,
        "The running template can't be kept in memory (%s): its start command will run at the start of each sandbox",
        err.msg);
    return;
  }
  snprintf(run->checkpoint, sizeof(run->checkpoint), "%s", run->id);
  snprintf(run->secret, sizeof(run->secret), "%s", f->box.secret);
  run->checkpoint_size = jail_checkpoint_bytes(path);
  build_say(run, LOG_INFO, "[finalize] The running template is kept in memory (%llu MB)",
            (unsigned long long)(run->checkpoint_size + (1 << 20) - 1) >> 20);
}

/* ---- what is there already ---- */

static bool same_machine(const struct build_run *run, const struct row_build *row)
{
  return row->cpus == run->cpus && row->memory_mb == run->memory_mb && row->disk_mb == run->disk_mb &&
         !strcmp(row->runtime, warden_runtime(run->warden));
}

/* On the loop: a checkpoint of the same layers, settings, commands and sizes, written under this runtime. */
static void find_checkpoint(struct build_run *run, void *arg)
{
  struct build *const *list;
  cleanup_buf struct buf config = BUF_INIT(4 << 20);
  build_state_config(&run->state, true, &config);
  for (size_t i = catalog_builds(warden_catalog(run->warden), &list); i-- > 0;) {
    const struct row_build *row = &list[i]->row;
    struct str own, below;
    if (!row->checkpoint[0] || row->kind != BUILD_PLAIN || strcmp(list[i]->of->row.team, run->team) ||
        !same_machine(run, row))
      continue;
    str_cut(str_of(row->layers), '\n', &own, &below);
    if (!str_eq(below, buf_str(&run->state.layers)) || !str_is(buf_str(&config), row->config) ||
        str_copyz(own, run->checkpoint_layer, sizeof(run->checkpoint_layer)))
      continue;
    memcpy(run->checkpoint, row->checkpoint, sizeof(run->checkpoint));
    memcpy(run->secret, row->secret, sizeof(run->secret));
    run->checkpoint_size = row->checkpoint_size;
    run->checkpoint_layer_bytes = row->layer_bytes;
    run->borrowed = true;
    return;
  }
}

static bool take_checkpoint(struct build_run *run)
{
  if (run->fresh || !run->state.start || !checkpoints_enabled(run->warden))
    return false;
  build_ask(run, find_checkpoint, NULL);
  if (run->borrowed)
    build_say(run, LOG_INFO, "CACHED [finalize] The running template, kept in memory by an earlier build of the same");
  return run->borrowed;
}

/* ---- the template's Python ---- */

struct loading {
  struct str config;
  struct zygote *zygote;
  bool ready, hopeful;
};

static void look_at_zygote(struct build_run *run, void *arg)
{
  struct loading *l = arg;
  l->zygote = warden_config(run->warden)->zygotes
                  ? zygote_for(run->warden, buf_str(&run->state.layers), l->config, run->template_id, run->team)
                  : NULL;
  l->ready = zygote_ready(l->zygote);
  l->hopeful = zygote_hopeful(l->zygote);
  run->zygote =
      l->ready ? l->zygote : NULL; /* here, on the loop: it keeps its user while a run names it (builder_enters) */
}

/* So that the first sandbox is as quick as any. A Python that can't be loaded is no reason to fail: sandboxes do
 * without. */
static int load_python(struct build_run *run, struct str config, struct err *err)
{
  struct loading l = {.config = config};
  int64_t begun = clock_mono_us();
  for (;;) {
    int r = build_stopped(run, err);
    if (r)
      return r;
    build_ask(run, look_at_zygote, &l);
    if (l.ready || !l.hopeful || clock_mono_us() - begun > LOAD_LIMIT_S * 1000000LL)
      break;
    poll(NULL, 0, LOAD_LOOK_MS);
  }
  if (l.ready && clock_mono_us() - begun > LOAD_LOOK_MS * 1000)
    build_say(run, LOG_INFO, "[finalize] Python is loaded, took %.2fs", (double)(clock_mono_us() - begun) / 1e6);
  return 0;
}

/* ---- all of it ---- */

static int start_and_keep(struct build_run *run, const char *config, struct err *err)
{
  struct build_state *st = &run->state;
  struct final f = {.run = run};
  int r = build_box_open(&f.box, run, buf_z(&st->layers), config, err);
  r = r ? r : start(&f, err);
  r = r ? r : wait_ready(&f, st->ready ? st->ready : READY_DEFAULT, err);
  if (!r && st->start)
    keep_checkpoint(&f);
  struct err why = ERR_NONE;
  if (!run->recipe.debug && build_keep_wanted(&f.box, r) &&
      (build_keep_hold(&f.box, &why) || build_keep_give(&f.box, &why)))
    build_say(run, LOG_WARN, "The box in which this failed is not kept, only its files are: %s", why.msg);
  build_cmd_free(&f.start);
  build_box_remove(&f.box);
  return r;
}

int build_finalize(struct build_run *run, struct err *err)
{
  struct build_state *st = &run->state;
  cleanup_buf struct buf config = BUF_INIT(4 << 20);
  if (take_checkpoint(run))
    return 0;
  build_state_config(st, false, &config);
  int r = load_python(run, buf_str(&config), err);
  if (r || (!st->start && !st->ready))
    return r;
  r = start_and_keep(run, buf_z(&config), err);
  if (r && run->recipe.debug && r != -ECANCELED && r != -ETIMEDOUT) {
    build_say(run, LOG_ERROR, "%s; the build continues because of the debug option", err->msg);
    *err = ERR_NONE;
    r = 0;
  }
  return r;
}
