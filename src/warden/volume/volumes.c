/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.c - see volumes.h. Files are made on worker threads. */
#include "warden/volume/volumes.h"

#include "warden/core/context.h"
#include "warden/core/volume_mounts.h"
#include "warden/core/worker_pool.h"
#include "warden/volume/volume_content.h"
#include "warden/volume/volume_removal.h"
#include "warden/volume/volume_token.h"
#include <stdio.h>

struct volume_job {
  uv_work_t work;
  struct warden *warden;
  struct origin origin;
  struct row_volume row;
  bool begun; /* its row was there before: there may be files */
  struct volume_place place;
  struct volume_limits limits;
  struct volume_usage usage;
  int result;
  struct err err;
};

/* ---- the tree ---- */

static void make_tree(uv_work_t *work)
{
  struct volume_job *j = work->data;
  j->result = volume_backing_create(&j->place, j->row.id, &j->limits, &j->err);
  if (j->result == -EEXIST && j->begun) /* an earlier warden came so far; nobody else may name files that are there */
    j->result = 0;
}

static void find_tree(uv_work_t *work)
{
  struct volume_job *j = work->data;
  cleanup_fd int fd = j->place.directory ? volume_backing_open(&j->place, j->row.id, &j->err) : -1;
  if (!j->place.directory)
    j->result = err_set(&j->err, -EINVAL,
                        "images are mounted by one server only: volumes are shared with volumes_backing = directory");
  else
    j->result = MIN(fd, 0);
}

/* ---- answers ---- */

void volumes_put(struct buf *b, const struct warden *w, const struct row_volume *r, bool token)
{
  wire_putz(b, W_ID, r->id);
  wire_putz(b, W_TEAM, r->team);
  wire_putz(b, W_NAME, r->name);
  wire_put_u64(b, W_CREATED, (uint64_t)r->created_us);
  if (!token)
    return;
  char text[VOLUME_TOKEN_SIZE];
  volume_token_make(str_of(warden_secret(w)), r->id, text);
  wire_putz(b, W_TOKEN, text);
}

static void answer(struct volume_job *j)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  if (j->result && j->origin.ipc)
    reply_end(j->warden, j->origin, j->result, &j->err);
  else if (j->result)
    log_error("%s", j->err.msg);
  if (j->result || !j->origin.ipc)
    return;
  wire_begin(&b, WIRE_REPLY, j->origin.id, 0);
  volumes_put(&b, j->warden, &j->row, true);
  reply_packet(j->warden, j->origin, &b);
}

/* ---- create ---- */

static void tree_made(uv_work_t *work, int status)
{
  struct volume_job *j = work->data;
  struct store *s = warden_store(j->warden);
  struct err err = ERR_NONE;
  j->row.state = VOLUME_READY;
  if (!j->result)
    j->result = store_volume_put(s, &j->row, &j->err);
  else if (store_volume_delete(s, j->row.id, &err))
    log_error("volume %s: %s", j->row.id, err.msg);
  answer(j);
  free(j);
}

static void queue(struct warden *w, struct origin origin, const struct row_volume *row, bool begun, uv_work_cb act,
                  uv_after_work_cb done)
{
  struct volume_job *j = xcalloc(1, sizeof(*j));
  *j = (struct volume_job){.warden = w, .origin = origin, .row = *row, .begun = begun};
  j->place = volume_mounts_place(w);
  j->limits = (struct volume_limits){.bytes = (uint64_t)warden_config(w)->volume_mb << 20,
                                     .inodes = warden_config(w)->volume_inodes};
  j->work.data = j;
  worker_pool_queue_volume(w, row->team, &j->work, act, done);
}

static int may_create(struct warden *w, const struct row_volume *row, struct err *err)
{
  const struct warden_config *c = warden_config(w);
  size_t have = store_volume_count(warden_store(w), row->team), most = c->team_volumes_max;
  struct row_volume other;
  if (!store_volume_by_name(warden_store(w), str_of(row->team), str_of(row->name), &other))
    return err_set(err, -EINVAL, "this team has a volume with the name '%s' already: choose another one, or delete it",
                   row->name);
  if (have >= most)
    return err_set(err, -E2BIG,
                   "this team has %zu volumes, as many as it may (%zu, setting team_volumes_max): delete some "
                   "first (one counts until its files are gone, some seconds later)",
                   have, most);
  if (c->team_volumes_mb && (have + 1) * c->volume_mb > c->team_volumes_mb)
    return err_set(err, -E2BIG,
                   "another volume of %u MiB would give this team more than the %u MiB that its volumes may have "
                   "together (setting team_volumes_mb): delete some first",
                   c->volume_mb, c->team_volumes_mb);
  if (c->team_volumes_inodes && (have + 1) * c->volume_inodes > c->team_volumes_inodes)
    return err_set(err, -E2BIG,
                   "another volume of %llu files would give this team more than the %llu that its volumes may have "
                   "together (setting team_volumes_inodes): delete some first",
                   (unsigned long long)c->volume_inodes, (unsigned long long)c->team_volumes_inodes);
  return 0;
}

void volumes_create(struct warden *w, struct origin origin, struct row_volume *row)
{
  struct err err = ERR_NONE;
  struct row_volume there;
  bool asked = !store_volume_get(warden_store(w), str_of(row->id), &there);
  int r = 0;
  if (asked && (strcmp(there.team, row->team) != 0 || there.state == VOLUME_DELETING ||
                there.attached != row->attached || row->attached))
    r = err_set(&err, -EINVAL, "there was a volume with the id %s before", row->id);
  else if (!asked)
    r = may_create(w, row, &err);
  row->state = VOLUME_CREATING;
  if (!r && !asked)
    r = store_volume_put(warden_store(w), row, &err);
  if (r == -EEXIST) /* one that is being created at this moment */
    r = -EINVAL;
  if (r)
    reply_end(w, origin, r, &err);
  else
    queue(w, origin, asked ? &there : row, asked, row->attached ? find_tree : make_tree, tree_made);
}

/* ---- delete ---- */

/* The answer does not wait for the tree, which may be as large as its team liked: the volume is gone for everybody. */
void volumes_remove(struct warden *w, struct origin origin, struct row_volume *row)
{
  struct err err = ERR_NONE;
  char box[BOX_ID_SIZE];
  size_t mounts = volume_mounts_users(w, row, box);
  int r = 0;
  if (mounts)
    r = err_set(&err, -EBUSY, "volume '%s' is mounted by %zu running or paused sandbox%s (%s): kill %s first",
                row->name, mounts, mounts == 1 ? "" : "es", box, mounts == 1 ? "it" : "them");
  row->state = VOLUME_DELETING;
  if (!r)
    r = row->attached ? store_volume_delete(warden_store(w), row->id, &err)
                      : store_volume_put(warden_store(w), row, &err);
  if (!r)
    volume_content_forget(w, row->id);
  if (!r && !row->attached) /* the files of an attached one are another server's */
    volume_removal_start(w, row);
  reply_end(w, origin, r, &err);
}

/* ---- measuring ---- */

static void measure(uv_work_t *work)
{
  struct volume_job *j = work->data;
  j->result =
      volume_backing_usage(&j->place, j->row.id, warden_config(j->warden)->volume_scan_entries, &j->usage, &j->err);
}

static void measured(uv_work_t *work, int status)
{
  struct volume_job *j = work->data;
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct wire_volume_usage u = {j->usage.bytes, j->usage.inodes, j->usage.bytes_max, j->usage.inodes_max,
                                j->usage.whole};
  wire_begin(&b, WIRE_REPLY, j->origin.id, 0);
  wire_put(&b, W_SAMPLE, str_make(&u, sizeof(u)));
  if (j->result)
    reply_end(j->warden, j->origin, j->result, &j->err);
  else
    reply_packet(j->warden, j->origin, &b);
  free(j);
}

void volumes_measure(struct warden *w, struct origin origin, const struct row_volume *row)
{
  queue(w, origin, row, true, measure, measured);
}

/* ---- handing out ---- */

static void open_root(uv_work_t *work)
{
  struct volume_job *j = work->data;
  j->result = volume_backing_open(&j->place, j->row.id, &j->err); /* a descriptor, or negative */
}

static void opened_root(uv_work_t *work, int status)
{
  struct volume_job *j = work->data;
  cleanup_buf struct buf b = BUF_INIT(256);
  cleanup_fd int fd = MAX(j->result, -1);
  wire_begin(&b, WIRE_REPLY, j->origin.id, 0);
  if (j->result < 0)
    reply_end(j->warden, j->origin, j->result, &j->err);
  else if (reply_possible(j->warden, j->origin))
    reply_send_on(j->origin.ipc, &b, fd);
  free(j);
}

void volumes_hand_out(struct warden *w, struct origin origin, const struct row_volume *row)
{
  queue(w, origin, row, true, open_root, opened_root);
}

/* ---- the rest ---- */

int volumes_find(struct warden *w, struct str team, struct str id, struct row_volume *out)
{
  int r = store_volume_get(warden_store(w), id, out);
  return r || out->state != VOLUME_READY || !str_is(team, out->team) ? -ENOENT : 0;
}

struct begun {
  VEC(struct row_volume) rows;
};

static int keep_begun(const struct row_volume *r, void *arg)
{
  struct begun *b = arg;
  if (r->state != VOLUME_READY)
    vec_push(&b->rows, *r);
  return 0;
}

static const struct origin nobody;

void volumes_open(struct warden *w)
{
  struct begun b = {0};
  volume_removal_sweep(w);
  store_volumes(warden_store(w), NULL, keep_begun, &b);
  for (size_t i = 0; i < b.rows.n; i++) {
    const struct row_volume *row = &b.rows.p[i];
    if (row->state == VOLUME_CREATING)
      queue(w, nobody, row, true, row->attached ? find_tree : make_tree, tree_made);
    else
      volume_removal_start(w, row);
  }
  vec_free(&b.rows);
}
