/* SPDX-License-Identifier: Apache-2.0 */
/* fork.c - see fork.h. */
#include "warden/box/fork.h"

#include "warden/egress/policies.h"
#include "warden/egress/prepare.h"
#include "warden/box/memory_guard.h"
#include "warden/core/node.h"
#include "warden/core/microvm.h"
#include "warden/core/quota.h"
#include "warden/warm/launch.h"
#include "warden/core/box_event.h"
#include "warden/core/box_reply.h"
#include "warden/box/pause_rules.h"
#include "warden/core/checkpoint_store.h"
#include "wire/api_key.h"
#include "warden/core/egress.h"
#include "warden/box/transition.h"
#include "warden/box/box_create.h"
#include "warden/core/warden_state.h"
#include "warden/db/ref.h"
#include "warden/core/id_slots.h"
#include "warden/core/storage_quota.h"
#include "wire/sizes.h"
#include <stdio.h>

struct fork {
  struct copy copy;
  struct warden *warden;
  struct origin origin;
  char build_id[UUID_SIZE], source[BOX_ID_SIZE];
  uint32_t timeout_s;
  struct build *build; /* the copy, once it is kept */
  size_t n, pending;
  struct fork_one {
    char id[BOX_ID_SIZE];
    int status;
    struct err err;
  } of[];
};

/* ---- the answer ---- */

static void fork_free(struct fork *f)
{
  struct build *build = f->build;
  struct warden *w = f->warden;
  if (build) {
    char checkpoint[sizeof(build->row.checkpoint)];
    build->pinned = false;
    memcpy(checkpoint, build->row.checkpoint, sizeof(checkpoint));
    build->row.checkpoint[0] = 0;
    checkpoint_drop(w, checkpoint);
    store_build_drop_checkpoint(w->store, build->row.id, NULL);
    fork_release(w, build);
  }
  free(f);
}

static void fork_answer(struct fork *f)
{
  for (size_t i = 0; i < f->n; i++) {
    struct fork_one *one = &f->of[i];
    struct box *b = box_find(f->warden, str_of(one->id), STR_NONE);
    if (!b && !one->status)
      one->status = err_set(&one->err, -ENOENT, "the sandbox ended immediately after its start");
    reply_item(f->warden, f->origin, one->status, b, !f->copy.checkpoint[0], &one->err);
  }
  reply_end(f->warden, f->origin, 0, NULL);
  fork_free(f);
}

static void fork_refuse(struct fork *f, int status, const struct err *err)
{
  reply_end(f->warden, f->origin, status, err);
  fork_free(f);
}

/* ---- the new boxes ---- */

static void fork_launched(struct launch *h)
{
  struct fork *f = h->arg;
  size_t i = 0;
  while (i < f->n - 1 && strcmp(f->of[i].id, h->box->row.id))
    i++;
  f->of[i].status = box_launched(h, box_put_resumed);
  f->of[i].err = h->err;
  if (--f->pending == 0)
    fork_answer(f);
}

struct forked {
  struct fork *fork;
  struct box *box;
};

static void fork_launch(struct fork *f, struct box *b)
{
  if (f->copy.checkpoint[0])
    launch_restore(b, f->build->row.checkpoint, f->build->row.secret, fork_launched, f);
  else
    launch_from_build(b, fork_launched, f);
}

static void fork_failed(struct fork *f, struct box *b, int r, const struct err *err)
{
  size_t i = 0;
  while (i < f->n - 1 && strcmp(f->of[i].id, b->row.id))
    i++;
  f->of[i].status = r;
  f->of[i].err = *err;
  b->warden->launches--;
  box_launch_failed(b, r, err);
  if (--f->pending == 0)
    fork_answer(f);
}

static void on_policy(void *arg, int result, const struct err *err)
{
  struct forked one = *(struct forked *)arg;
  free(arg);
  if (result)
    fork_failed(one.fork, one.box, result, err);
  else
    fork_launch(one.fork, one.box);
}

static void on_prepared(void *arg, int result, const struct err *err)
{
  struct forked *one = arg;
  if (result)
    on_policy(one, result, err);
  else
    policy_apply(one->box, on_policy, one);
}

/* A copy has an authority of its own: the one of its source may sign for the source alone. */
static void fork_start(struct fork *f, struct box *b)
{
  if (!b->egress) {
    fork_launch(f, b);
    return;
  }
  struct forked *one = xcalloc(1, sizeof(*one));
  *one = (struct forked){f, b};
  egress_prepare(b->warden, b->row.team, b->egress, true, on_prepared, one);
}

/* The access token is the only thing in these settings that is the box's own, and the warden knows both without reading
 * the rest: text of the same length takes the other's place. */
static void retoken(struct warden *w, char *init, const char *from, const char *to)
{
  char old[TOKEN_TEXT], new[TOKEN_TEXT];
  token_make(str_of(w->secret), TOKEN_ACCESS, str_of(from), old);
  token_make(str_of(w->secret), TOKEN_ACCESS, str_of(to), new);
  ptrdiff_t at = str_search(str_of(init), str_of(old));
  if (at >= 0)
    memcpy(init + at, new, strlen(old));
}

static void fork_row(struct box *b, const struct fork *f, const struct box *source, const char *id)
{
  struct row_box *r = &b->row;
  unsigned slot = r->slot;
  uint8_t secret[SHA256_LEN];
  *r = source->row;
  r->slot = slot;
  r->config = xstrdup(source->row.config);
  r->init = xstrdup(source->row.init);
  r->allow = xstrdup(source->row.allow);
  r->deny = xstrdup(source->row.deny);
  r->mounts = xstrdup(source->row.mounts ? source->row.mounts : "");
  r->tokens = xstrdup(source->row.tokens ? source->row.tokens : "");
  retoken(b->warden, r->init, r->id, id);
  snprintf(r->id, sizeof(r->id), "%s", id);
  memcpy(r->host_name, b->name, sizeof(r->host_name));
  memcpy(r->build, f->build->row.id, sizeof(r->build));
  random_bytes(secret, sizeof(secret));
  hex_encode(secret, sizeof(secret), r->secret);
  r->flags &= ~(unsigned)BOX_LINKED;
  r->flags |= egress_wanted(b->warden, r->flags, str_of(r->allow)) ? BOX_LINKED : 0;
  r->state = BOX_STARTING;
  r->run = 1;
  uuid4(r->execution);
  r->timeout_s = f->timeout_s;
  r->end_us = (int64_t)f->timeout_s * 1000000;
  r->checkpoint[0] = 0;
  r->tier = TIER_FROZEN;
  if (!f->copy.checkpoint[0])
    memcpy(r->runtime, b->warden->runtime, sizeof(r->runtime));
}

static int fork_begin(struct fork *f, const struct box *source, const char *id, struct err *err)
{
  struct warden *w = f->warden;
  unsigned retry = 0;
  if (box_find(w, str_of(id), STR_NONE)) /* a repeated request: this one was made before */
    return 0;
  const struct row_box *of = &source->row;
  int r = quota_fits(w, str_of(of->team), (struct box_size){of->cpus, of->memory_mb, of->disk_mb}, err);
  r = r ? r : node_admit(w, err);
  r = r ? r : quota_admit(w, str_of(of->team), of->memory_mb, true, &retry, err);
  r = r ? r : box_check_limit(w, err);
  r = r ? r : storage_admit(w, str_of(of->team), of->flags & BOX_AUTO_PAUSE ? STORAGE_PAUSE : STORAGE_BYTES, err);
  if (r)
    return r;
  struct box *b = box_new(w, NULL);
  b->template = source->template;
  b->build = f->build;
  if (slot_take(w, &b->row.slot)) {
    free(b);
    return err_set(err, -EAGAIN, "no free id range for another sandbox");
  }
  fork_row(b, f, source, id);
  b->egress = box_egress_copy(source->egress);
  b->trace.came_us = clock_mono_us();
  box_register(b);
  f->pending++;
  fork_start(f, b);
  return 0;
}

/* ---- the copy as a build ---- */

/* The copy and the event that tells of it. What the catalogue has of it already goes again when it can't be kept. */
static int commit_copy(struct warden *w, const struct box *source, struct template *t, const struct row_build *row,
                       struct str tag, struct err *err)
{
  int r = store_begin(w->store, err);
  if (r)
    return r;
  r = box_tell_checkpointed(w, &source->row, err);
  r = r ? r : catalog_build_add(w->catalog, t, row, tag, err);
  r = store_end(w->store, r, err);
  struct build *left = r ? catalog_build(w->catalog, str_of(row->id)) : NULL;
  if (left)
    catalog_build_remove(w->catalog, left, NULL);
  return r;
}

/* `of` is the build the source was made from; its layers lie below the copy's. */
static int keep_build(struct warden *w, const struct copy *copy, const struct box *source, const char *id,
                      enum build_kind kind, struct template *t, const char *tag, struct build **out, struct err *err)
{
  cleanup_buf struct buf layers = BUF_INIT(1 << 20);
  buf_addf(&layers, "%s\n%s", copy->layer, source->build->row.layers);
  if (buf_failed(&layers))
    return err_set(err, -E2BIG, "too many layers");
  struct row_build row = source->build->row;
  snprintf(row.id, sizeof(row.id), "%s", id);
  memcpy(row.template_id, t->row.id, sizeof(row.template_id));
  row.kind = kind;
  row.mounts = source->row.mounts;
  row.layers = (char *)buf_z(&layers);
  memcpy(row.checkpoint, copy->checkpoint, sizeof(row.checkpoint));
  memcpy(row.source, source->row.id, sizeof(row.source));
  memcpy(row.base, source->row.base[0] ? source->row.base : source->row.template_id, sizeof(row.base));
  memcpy(row.runtime, source->row.runtime, sizeof(row.runtime));
  memcpy(row.secret, source->row.secret, sizeof(row.secret));
  row.checkpoint_size = copy->bytes;
  row.layer_bytes = copy->layer_bytes;
  row.created_us = clock_wall_us();
  int r = commit_copy(w, source, t, &row, str_of(tag), err);
  *out = r ? NULL : catalog_build(w->catalog, str_of(id));
  return r;
}

static void drop_copy(struct warden *w, const struct copy *copy)
{
  checkpoint_drop(w, copy->checkpoint);
  layer_drop(w, copy->layer);
}

static void first_layer(const struct build *b, char out[DATA_PATH_SIZE])
{
  struct str first, rest;
  str_cut(str_of(b->row.layers), '\n', &first, &rest);
  if (str_copyz(first, out, DATA_PATH_SIZE))
    out[0] = 0;
}

static void copy_names(const struct box *b, struct copy *copy, const char *build_id, bool files_only)
{
  struct warden *w = b->warden;
  if (w->checkpoints_on && !files_only)
    checkpoint_name(b, copy->checkpoint);
  else if (!files_only)
    log_with(LOG_WARN, (const char *[]){"box", b->row.id, NULL}, "copied without its memory, files only: %s",
             w->checkpoints_why);
  snprintf(copy->layer, sizeof(copy->layer), "%s/layers", w->config->data);
  path_mkdirs(copy->layer, 0755);
  snprintf(copy->layer, sizeof(copy->layer), "%s/layers/%s", w->config->data, build_id);
}

static int ready_to_copy(struct box *b, struct err *err)
{
  enum verdict verdict = copy_accepted(b->row.state);
  int r = microvm_refuse(b, "forked or kept as a snapshot", err);
  if (r)
    return r;
  if (verdict == VERDICT_PAUSED)
    return err_set(err, -EHOSTDOWN, "the sandbox is paused");
  return verdict == VERDICT_STARTING ? err_set(err, -EBUSY, "the sandbox is still starting") : 0;
}

/* ---- forks ---- */

static void fork_copied(struct copy *copy, struct box *b, int result, const struct err *why)
{
  struct fork *f = (struct fork *)copy;
  struct err err = ERR_NONE;
  if (!b) {
    fork_refuse(f, err_set(&err, -ENOENT, "the sandbox was killed"), &err);
    return;
  }
  if (result) {
    fork_refuse(f, result, why);
    return;
  }
  if ((result = keep_build(f->warden, copy, b, f->build_id, BUILD_FORK, b->template, "", &f->build, &err))) {
    drop_copy(f->warden, copy);
    fork_refuse(f, result, &err);
    return;
  }
  f->build->pinned = true;
  f->pending = 1; /* held until all have begun, so that an early failure does not answer for all */
  for (size_t i = 0; i < f->n; i++)
    f->of[i].status = fork_begin(f, b, f->of[i].id, &f->of[i].err);
  if (--f->pending == 0)
    fork_answer(f);
}

void box_fork(struct box *b, const struct fork_params *o)
{
  struct warden *w = b->warden;
  struct err err = ERR_NONE;
  size_t n = 1;
  for (size_t i = 0; i < o->ids.n; i++)
    n += o->ids.p[i] == ',';
  unsigned most = quota_boxes_max(w, str_of(b->row.team));
  int r = n > FORKS_MAX ? err_set(&err, -EINVAL, "%zu forks at once; at most %d", n, FORKS_MAX) : 0;
  if (!r && most && n >= most)
    r = err_set(&err, -EINVAL, "%zu forks at once; your team may have %u running sandboxes in all", n, most);
  r = r ? r : ready_to_copy(b, &err);
  r = r ? r : memory_guard_admit(w, str_of(b->row.team), &err);
  r = r ? r : storage_room(w, ROOM_FOR_CREATE, &err);
  r = r ? r : storage_admit(w, str_of(b->row.team), STORAGE_BYTES, &err);
  if (r) {
    reply_end(w, o->origin, r, &err);
    return;
  }
  struct fork *f = xcalloc(1, sizeof(*f) + n * sizeof(f->of[0]));
  struct str rest = o->ids, id;
  for (; rest.n; f->n++) {
    str_cut(rest, ',', &id, &rest);
    str_copyz(id, f->of[f->n].id, sizeof(f->of[0].id));
  }
  f->warden = w;
  f->origin = o->origin;
  f->timeout_s = o->timeout_s;
  if (str_copyz(o->build, f->build_id, sizeof(f->build_id)) || catalog_build(w->catalog, o->build))
    uuid4(f->build_id); /* a repeated request, and boxes of the first try stand on that build */
  copy_names(b, &f->copy, f->build_id, false);
  f->copy.done = fork_copied;
  f->copy.transient = true;
  transition_copy(b, &f->copy);
}

static bool in_use(struct warden *w, const struct build *build)
{
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);)
    if (((struct box *)value)->build == build)
      return true;
  return false;
}

/* The layer of a copy is named after its build. A kept box of a failed build (build_keep.h) stands on layers of steps.
 */
static void own_layer(const struct build *b, char out[DATA_PATH_SIZE])
{
  first_layer(b, out);
  size_t n = strlen(out), id = strlen(b->row.id);
  if (n < id || strcmp(out + n - id, b->row.id) != 0)
    out[0] = 0;
}

void fork_release(struct warden *w, struct build *build)
{
  if (!build || build->row.kind != BUILD_FORK || build->pinned || in_use(w, build))
    return;
  struct copy copy = {0};
  struct err err = ERR_NONE;
  own_layer(build, copy.layer);
  memcpy(copy.checkpoint, build->row.checkpoint, sizeof(copy.checkpoint));
  if (catalog_build_remove(w->catalog, build, &err))
    log_warn("files of a fork not removed: %s", err.msg);
  else
    drop_copy(w, &copy);
}

void fork_sweep(struct warden *w)
{
  struct build *const *list;
  for (size_t i = catalog_builds(w->catalog, &list); i-- > 0;) {
    catalog_builds(w->catalog, &list);
    fork_release(w, list[i]);
  }
}

/* ---- snapshots ---- */

struct snapshot {
  struct copy copy;
  struct warden *warden;
  struct origin origin;
  char build_id[UUID_SIZE], alias[TEMPLATE_REF_SIZE], tag[132];
};

static void snapshot_answer(struct snapshot *s, const struct template *t)
{
  const struct build *build = catalog_build(s->warden->catalog, str_of(s->build_id));
  reply_snapshot(s->warden, s->origin, t, s->tag, build && !build->row.checkpoint[0]);
}

static void snapshot_copied(struct copy *copy, struct box *b, int result, const struct err *why)
{
  struct snapshot *s = (struct snapshot *)copy;
  struct warden *w = s->warden;
  struct err err = why ? *why : ERR_NONE;
  struct template *t;
  struct build *build;
  char id[24];
  if (b)
    b->snapped = false;
  else
    result = err_set(&err, -ENOENT, "the sandbox was killed");
  bool kept = !result;
  random_id(id, 20);
  if (!result)
    result = catalog_template_make(w->catalog, str_of(b->row.team), s->alias[0] ? str_of(s->alias) : str_of(id),
                                   str_of(id), &t, &err);
  if (!result)
    result = keep_build(w, copy, b, s->build_id, BUILD_SNAPSHOT, t, s->tag, &build, &err);
  if (result && kept)
    drop_copy(w, copy);
  if (result)
    reply_end(w, s->origin, result, &err);
  else
    snapshot_answer(s, t);
  free(s);
}

/* The namespace, where one is given, must be the team's own. */
static int read_name(struct snapshot *s, const struct box *b, struct str name, struct err *err)
{
  cleanup_buf struct buf lowered = BUF_INIT(1024);
  struct ref ref = {.tag = STR("default")};
  const struct row_team *team = catalog_team(s->warden->catalog, str_of(b->row.team));
  int r = name.n ? ref_read(name, &lowered, &ref, err) : 0;
  if (!r && ref.space.n && (!team || !str_is(ref.space, team->slug)))
    r = err_set(err, -EINVAL, "the namespace '" STR_FMT "' is not your team's ('%s')", STR_ARG(ref.space),
                team ? team->slug : "");
  if (!r && (str_copyz(ref.alias, s->alias, sizeof(s->alias)) || str_copyz(ref.tag, s->tag, sizeof(s->tag)) ||
             uuid_valid(ref.tag)))
    r = err_set(err, -EINVAL, "'" STR_FMT "' is not a snapshot name", STR_ARG(name));
  return r;
}

void box_snapshot(struct box *b, const struct snapshot_params *o)
{
  struct warden *w = b->warden;
  struct err err = ERR_NONE;
  struct snapshot *s = xcalloc(1, sizeof(*s));
  s->warden = w;
  s->origin = o->origin;
  int r = read_name(s, b, o->name, &err);
  struct build *have = r ? NULL : catalog_build(w->catalog, o->build);
  if (have) {
    str_copyz(o->build, s->build_id, sizeof(s->build_id));
    snapshot_answer(s, have->of);
    free(s);
    return;
  }
  if (!r && (!uuid_valid(o->build) || str_copyz(o->build, s->build_id, sizeof(s->build_id))))
    r = err_set(&err, -EINVAL, "invalid build ID");
  r = r ? r : ready_to_copy(b, &err);
  if (!r && b->snapped)
    r = err_set(&err, -EBUSY, "another snapshot of the sandbox is being made; ask again when it is done");
  r = r ? r : storage_room(w, ROOM_FOR_BUILD, &err);
  r = r ? r : storage_admit(w, str_of(b->row.team), STORAGE_SNAPSHOT, &err);
  if (r) {
    reply_end(w, o->origin, r, &err);
    free(s);
    return;
  }
  copy_names(b, &s->copy, s->build_id, o->files_only);
  s->copy.done = snapshot_copied;
  b->snapped = true;
  transition_copy(b, &s->copy);
}

int snapshots_delete(struct warden *w, struct str team, struct template *t, struct err *err)
{
  VEC(struct copy) gone = {0};
  struct build *const *list;
  size_t n = catalog_builds(w->catalog, &list);
  for (size_t i = 0; i < n; i++) {
    struct copy one = {0};
    if (list[i]->of != t || (list[i]->row.kind != BUILD_SNAPSHOT && !list[i]->row.checkpoint[0]))
      continue;
    first_layer(list[i], one.layer);
    memcpy(one.checkpoint, list[i]->row.checkpoint, sizeof(one.checkpoint));
    vec_push(&gone, one);
  }
  int r = catalog_delete(w->catalog, team, t, err);
  for (size_t i = 0; !r && i < gone.n; i++)
    drop_copy(w, &gone.p[i]);
  vec_free(&gone);
  return r;
}
