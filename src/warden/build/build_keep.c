/* SPDX-License-Identifier: Apache-2.0 */
/* build_keep.c - see build_keep.h.
 *
 * The agent in a build's box gets its identity like that of a restored one (identity.h), on the build's thread; then
 * the loop takes the box over as if it had just been launched. A sandbox needs a build to stand on, so that it can
 * sleep and be copied: one without a name, like those of forks, which goes with the box. */
#include "warden/build/build_keep.h"

#include "warden/core/quota.h"
#include "warden/warm/launch.h"
#include "warden/build/build_state.h"
#include "warden/core/identity.h"
#include "wire/api_key.h"
#include "warden/core/box_event.h"
#include "warden/core/egress.h"
#include "warden/box/box.h"
#include "warden/box/box_create.h"
#include "warden/core/context.h"
#include <poll.h>
#include <stdio.h>

#define PATIENCE_S 30 /* a build that is out of time has so long for this */

struct handover {
  struct build_box *box;
  struct row_box row; /* its texts are in the arena */
  int result;
  struct err err;
};

bool build_keep_wanted(const struct build_box *b, int result)
{
  struct pollfd over = {.fd = b->jail.pidfd, .events = POLLIN};
  return result && result != -ECANCELED && b->run->recipe.keep && b->jail.pidfd >= 0 && b->talk >= 0 &&
         poll(&over, 1, 0) == 0;
}

int build_keep_hold(struct build_box *b, struct err *err)
{
  struct build_run *run = b->run;
  run->deadline_us = MAX(run->deadline_us, clock_mono_us() + PATIENCE_S * 1000000LL);
  int r = build_box_release(b, err);
  return r ? r : jail_freeze(warden_instance(run->warden), b->name, true, err);
}

/* ---- on the build's thread ---- */

static void fill_row(struct handover *g)
{
  struct build_box *b = g->box;
  struct build_run *run = b->run;
  struct row_box *r = &g->row;
  char token[TOKEN_TEXT];
  uint8_t secret[SHA256_LEN];
  random_bytes(secret, sizeof(secret));
  hex_encode(secret, sizeof(secret), r->secret);
  snprintf(r->id, sizeof(r->id), "i");
  random_id(r->id + 1, 20);
  uuid4(r->build);
  token_make(str_of(warden_secret(run->warden)), TOKEN_ACCESS, str_of(r->id), token);
  memcpy(r->team, run->team, sizeof(run->team));
  memcpy(r->template_id, run->template_id, sizeof(run->template_id));
  snprintf(r->host_name, sizeof(r->host_name), "%s", b->name);
  memcpy(r->runtime, warden_runtime(run->warden), sizeof(r->runtime));
  r->config =
      (char *)arena_fmt(&b->arena, "{\"metadata\":{\"failedBuild\":\"%s\",\"failedStep\":\"%s\"}}", run->id, run->step);
  r->init = (char *)arena_fmt(&b->arena, "{\"accessToken\":\"%s\"}", token);
  r->allow = r->deny = (char *)"";
  r->mounts = run->mounts && strcmp(run->step, "finalize") ? run->mounts : (char *)"";
  r->flags = BOX_SECURE | BOX_INTERNET | (egress_wanted(run->warden, BOX_INTERNET, STR_NONE) ? BOX_LINKED : 0);
  r->cpus = run->cpus;
  r->memory_mb = run->memory_mb;
  r->disk_mb = run->disk_mb;
  r->slot = run->slot;
  r->state = BOX_STARTING;
  r->run = 1;
  uuid4(r->execution);
  r->timeout_s = warden_config(run->warden)->keep_box_s;
  r->end_us = (int64_t)r->timeout_s * 1000000;
}

/* ---- on the loop ---- */

static int keep_build(struct handover *g, struct template *t, struct build **out)
{
  struct build_box *b = g->box;
  struct warden *w = b->run->warden;
  cleanup_buf struct buf config = BUF_INIT(4 << 20);
  build_state_config(&b->run->state, false, &config);
  struct row_build row = {.kind = BUILD_FORK,
                          .layers = (char *)b->layers,
                          .config = (char *)buf_z(&config),
                          .cpus = g->row.cpus,
                          .memory_mb = g->row.memory_mb,
                          .disk_mb = g->row.disk_mb,
                          .created_us = clock_wall_us()};
  memcpy(row.id, g->row.build, sizeof(row.id));
  memcpy(row.template_id, t->row.id, sizeof(row.template_id));
  int r = catalog_build_add(warden_catalog(w), t, &row, STR_NONE, &g->err);
  *out = r ? NULL : catalog_build(warden_catalog(w), str_of(row.id));
  return r;
}

static void hand_over(struct handover *g, struct template *t, struct build *build)
{
  struct build_box *b = g->box;
  struct box *box = box_new(b->run->warden, b->name);
  box->template = t;
  box->build = build;
  box->row = g->row;
  box->row.config = xstrdup(g->row.config);
  box->row.init = xstrdup(g->row.init);
  box->row.allow = xstrdup("");
  box->row.deny = xstrdup("");
  box->row.mounts = xstrdup(g->row.mounts);
  snprintf(box->row.alias, sizeof(box->row.alias), "%s", template_name(t));
  box_register(box);
  struct launch h = {.box = box, .jail = b->jail};
  b->jail = JAIL_NONE;
  b->given = b->run->given = true; /* from here on the jail and the id range are the sandbox's */
  g->result = box_launched(&h, box_put_created);
  g->err = h.err;
}

static void take_over(struct build_run *run, void *arg)
{
  struct handover *g = arg;
  struct warden *w = run->warden;
  struct template *t;
  struct build *build;
  unsigned retry;
  int r = warden_stopping(w) ? err_set(&g->err, -ESHUTDOWN, "the server is stopping") : 0;
  r = r ? r : catalog_template(warden_catalog(w), str_of(run->team), str_of(run->template_id), &t, NULL, &g->err);
  r = r ? r : quota_admit(w, str_of(run->team), run->memory_mb, true, &retry, &g->err);
  r = r ? r : box_check_limit(w, &g->err);
  r = r ? r : keep_build(g, t, &build);
  g->result = r;
  if (!r)
    hand_over(g, t, build);
}

int build_keep_give(struct build_box *b, struct err *err)
{
  struct build_run *run = b->run;
  struct handover g = {.box = b};
  fill_row(&g);
  int r = jail_uncache(&b->jail, err); /* the team's downloads are for builds */
  r = r ? r : jail_freeze(warden_instance(run->warden), b->name, false, err);
  r = r ? r : identity_tell(&b->jail, b->secret, &g.row, warden_config(run->warden)->agent_s, err);
  if (r)
    return r;
  build_ask(run, take_over, &g);
  if (g.result) {
    *err = g.err;
    return g.result;
  }
  memcpy(run->kept_box, g.row.id, sizeof(run->kept_box));
  build_say(run, LOG_WARN, "The box in which this failed is kept as sandbox %s for %u s, as it stands: cloche shell %s",
            g.row.id, g.row.timeout_s, g.row.id);
  return 0;
}
