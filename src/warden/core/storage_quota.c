/* SPDX-License-Identifier: Apache-2.0 */
/* storage_quota.c - see storage_quota.h. */
#include "warden/core/storage_quota.h"

#include "warden/core/box_state.h"
#include "warden/core/warden_state.h"
#include "warden/db/layer_owner.h"
#include "wire/sizes.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define FILE_LEAST   ((uint64_t)1 << 20) /* what the smallest archive counts: files cost more than their bytes */
#define GRANT_US     7200000000ll        /* a gate that died does not tell how its uploads ended; links live as long */
#define GRANTS_MAX   256                 /* uploads of one team at once */
#define SMALL_DISK   40                  /* the reserve is at most two such parts of a disk */
#define GRANT_ID_MAX 48
#define CLEAR_US     10000000 /* layers that nothing needs are looked for no more often */

struct grant {
  char team[UUID_SIZE], id[GRANT_ID_MAX];
  uint64_t bytes;
  int64_t until_us;
};

struct layer {
  char team[UUID_SIZE];
  uint64_t bytes, seen; /* the scan that found it last */
};

struct storage {
  struct map files;  /* team -> bytes of its archives, counted once */
  struct map layers; /* key -> struct layer */
  bool layers_known; /* they were looked for since they changed */
  int64_t cleared_us;
  uint64_t scans, counts;
  VEC(struct grant) grants;
};

static struct storage *storage_of(struct warden *w)
{
  if (!w->storage)
    w->storage = xcalloc(1, sizeof(*w->storage));
  return w->storage;
}

void storage_forget(struct warden *w)
{
  void *bytes;
  for (size_t i = 0; w->storage && map_next(&w->storage->files, &i, NULL, &bytes);)
    free(bytes);
  if (w->storage)
    map_free(&w->storage->files);
  storage_layers_changed(w);
}

void storage_layers_changed(struct warden *w)
{
  if (w->storage)
    w->storage->layers_known = false;
}

void storage_free(struct warden *w)
{
  void *layer;
  storage_forget(w);
  for (size_t i = 0; w->storage && map_next(&w->storage->layers, &i, NULL, &layer);)
    free(layer);
  if (w->storage)
    map_free(&w->storage->layers);
  if (w->storage)
    vec_free(&w->storage->grants);
  free(steal(&w->storage));
}

/* ---- what there is ---- */

static uint64_t counted(uint64_t bytes)
{
  return MAX(bytes, FILE_LEAST);
}

/* Archives on their way are in grants. */
static uint64_t count_files(const struct warden *w, struct str team)
{
  char path[DATA_PATH_SIZE];
  struct stat st;
  uint64_t bytes = 0;
  snprintf(path, sizeof(path), "%s/files/" STR_FMT, w->config->data, STR_ARG(team));
  cleanup_dir DIR *d = opendir(path);
  for (struct dirent *e; d && (e = readdir(d));)
    if (e->d_name[0] != '.' && str_search(str_of(e->d_name), STR(".new-")) < 0 &&
        !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
      bytes += counted((uint64_t)st.st_size);
  return bytes;
}

static uint64_t *files_of(struct warden *w, struct str team)
{
  struct storage *s = storage_of(w);
  uint64_t *bytes = map_get(&s->files, team);
  if (!bytes) {
    bytes = xmalloc(sizeof(*bytes));
    *bytes = count_files(w, team);
    map_put(&s->files, team, bytes);
  }
  return bytes;
}

static uint64_t granted_to(struct warden *w, struct str team, size_t *n)
{
  struct storage *s = storage_of(w);
  uint64_t bytes = 0;
  int64_t now = clock_mono_us();
  *n = 0;
  for (size_t i = s->grants.n; i-- > 0;) {
    if (s->grants.p[i].until_us < now) {
      s->grants.p[i] = s->grants.p[--s->grants.n];
    } else if (str_is(team, s->grants.p[i].team)) {
      bytes += s->grants.p[i].bytes;
      ++*n;
    }
  }
  return bytes;
}

/* Each layer's line is read once: a kept layer never changes. */
static void scan_layers(const struct warden *w, struct storage *s)
{
  char path[DATA_PATH_SIZE];
  snprintf(path, sizeof(path), "%s/layers", w->config->data);
  cleanup_dir DIR *d = opendir(path);
  s->scans++;
  for (struct dirent *e; d && (e = readdir(d));) {
    struct layer *l = e->d_name[0] == '.' ? NULL : map_get(&s->layers, str_of(e->d_name));
    if (!l && e->d_name[0] != '.') {
      l = xcalloc(1, sizeof(*l));
      layer_owner_read(dirfd(d), e->d_name, l->team, &l->bytes);
      map_put(&s->layers, str_of(e->d_name), l);
    }
    if (l)
      l->seen = s->scans;
  }
  s->layers_known = true;
}

static uint64_t layers_of(struct warden *w, struct str team)
{
  struct storage *s = storage_of(w);
  uint64_t bytes = 0;
  void *value;
  if (!s->layers_known)
    scan_layers(w, s);
  for (size_t i = 0; map_next(&s->layers, &i, NULL, &value);) {
    const struct layer *l = value;
    if (l->seen == s->scans && str_is(team, l->team))
      bytes += l->bytes;
  }
  return bytes;
}

/* A box without a limit of its disk has files in the data directory itself, which nobody counts. */
static uint64_t disk_now(const struct box *b)
{
  char path[DATA_PATH_SIZE];
  struct stat st;
  snprintf(path, sizeof(path), "%s/disk.img", b->dir);
  return stat(path, &st) ? 1 : (uint64_t)st.st_blocks * 512;
}

static uint64_t disk_bytes(struct box *b)
{
  if (!b->disk_bytes)
    b->disk_bytes = disk_now(b);
  return b->disk_bytes;
}

/* What is being made of it can come to: a checkpoint as large as a dump may be, and its disk, which a pause keeps and a
 * copy copies. */
static uint64_t reserve_of(const struct box *b)
{
  if (b->row.state != BOX_PAUSING && b->row.state != BOX_COPYING && !b->snapped)
    return 0;
  uint64_t disk = disk_now(b), memory = (uint64_t)b->row.memory_mb << 20;
  return disk + (b->warden->checkpoints_on ? jail_checkpoint_most(memory, disk) : 0);
}

/* Of a fork's build, once for all boxes that stand on it; they are of one team. */
static uint64_t fork_bytes(const struct box *b, uint64_t count)
{
  struct build *build = b->build;
  if (!build || build->row.kind != BUILD_FORK || build->counted == count)
    return 0;
  build->counted = count;
  return build->row.layer_bytes + (build->row.checkpoint[0] ? build->row.checkpoint_size : 0);
}

static void count_boxes(struct warden *w, struct str team, struct storage_use *out)
{
  void *value;
  uint64_t count = ++storage_of(w)->counts;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    struct box *b = value;
    if (!str_is(team, b->row.team))
      continue;
    out->reserved += reserve_of(b);
    out->snapshots += b->snapped;
    out->bytes += fork_bytes(b, count);
    if (!box_state_paused(b->row.state))
      continue;
    out->paused++;
    out->bytes += b->row.checkpoint_size + disk_bytes(b);
  }
}

/* Snapshots, and templates whose start command runs: one that changes nothing else has its base's checkpoint. */
static void count_builds(struct warden *w, struct str team, struct storage_use *out)
{
  struct build *const *list;
  struct map seen = {0};
  size_t n = catalog_builds(w->catalog, &list);
  for (size_t i = 0; i < n; i++) {
    const struct row_build *r = &list[i]->row;
    if (r->kind == BUILD_FORK || !str_is(team, list[i]->of->row.team))
      continue;
    out->snapshots += r->kind == BUILD_SNAPSHOT;
    if (r->checkpoint[0] && map_put(&seen, str_of(r->checkpoint), out))
      continue;
    out->bytes += r->checkpoint_size + r->layer_bytes;
  }
  map_free(&seen);
}

void storage_use(struct warden *w, struct str team, struct storage_use *out)
{
  size_t unused;
  *out = (struct storage_use){.bytes = *files_of(w, team) + granted_to(w, team, &unused) + layers_of(w, team)};
  count_boxes(w, team, out);
  count_builds(w, team, out);
  out->bytes += out->reserved;
}

/* ---- what there may be ---- */

static unsigned limit_of(struct warden *w, struct str team, unsigned of_server, size_t at)
{
  const struct row_team *t = catalog_team(w->catalog, team);
  uint32_t own = 0;
  if (t)
    memcpy(&own, (const char *)t + at, sizeof(own));
  return own ? own : of_server;
}

#define LIMIT(w, team, setting, field) limit_of(w, team, (w)->config->setting, offsetof(struct row_team, field))

static int too_many_bytes(uint64_t used, uint64_t reserved, unsigned most_mb, struct err *err)
{
  char under_way[100] = "";
  if (reserved)
    snprintf(under_way, sizeof(under_way), " (%" PRIu64 " of it for pauses, snapshots and forks under way)",
             reserved >> 20);
  return err_set(err, -EAGAIN,
                 "your team keeps %" PRIu64
                 " MiB of uploads, templates, snapshots, forks and paused sandboxes%s and may keep %u; delete some "
                 "first, or have the operator raise it (team_storage_mb, cloche team limit --storage)",
                 used >> 20, under_way, most_mb);
}

/* What a team keeps, after a look for what it need not where that is more than it may. */
static void use_within(struct warden *w, struct str team, uint64_t most, struct storage_use *use)
{
  struct storage *s = storage_of(w);
  int64_t now = clock_mono_us();
  storage_use(w, team, use);
  if (!most || use->bytes < most || !layers_of(w, team) || (s->cleared_us && now - s->cleared_us < CLEAR_US))
    return;
  s->cleared_us = now;
  if (w->hooks && w->hooks->clear_layers(w, team))
    storage_use(w, team, use);
}

int storage_admit(struct warden *w, struct str team, enum storage_kind kind, struct err *err)
{
  struct storage_use use;
  unsigned most = LIMIT(w, team, team_storage_mb, storage_max_mb), paused = LIMIT(w, team, team_paused_max, paused_max);
  unsigned snapshots = LIMIT(w, team, team_snapshots_max, snapshots_max);
  use_within(w, team, (uint64_t)most << 20, &use);
  if (kind == STORAGE_PAUSE && paused && use.paused >= paused)
    return err_set(err, -EAGAIN,
                   "your team has %zu paused sandboxes and may have %u; kill some first, or have the operator raise it "
                   "(team_paused_max, cloche "
                   "team limit --paused)",
                   use.paused, paused);
  if (kind == STORAGE_SNAPSHOT && snapshots && use.snapshots >= snapshots)
    return err_set(err, -EAGAIN,
                   "your team has %zu snapshots and may have %u; delete some first, or have the operator raise it "
                   "(team_snapshots_max, cloche team "
                   "limit --snapshots)",
                   use.snapshots, snapshots);
  return most && use.bytes >= (uint64_t)most << 20 ? too_many_bytes(use.bytes, use.reserved, most, err) : 0;
}

/* What a disk must have free, in MiB and as so many of SMALL_DISK parts of it, the less of the two. */
static const struct mark {
  const char *setting, *what;
  size_t at;
  unsigned parts;
} marks[] = {
    [ROOM_FOR_RESUME] = {"disk_stop_mb", "sandboxes that run", offsetof(struct warden_config, disk_stop_mb), 1},
    [ROOM_FOR_PAUSE] = {"disk_reserve_mb", "pauses, snapshots and forks",
                        offsetof(struct warden_config, disk_reserve_mb), 2},
    [ROOM_FOR_BUILD] = {"disk_builds_mb", "builds, uploads and snapshots",
                        offsetof(struct warden_config, disk_builds_mb), 3},
    [ROOM_FOR_CREATE] = {"disk_creates_mb", "new sandboxes", offsetof(struct warden_config, disk_creates_mb), 4},
};

static uint64_t mark_bytes(const struct warden *w, const struct mark *m, uint64_t disk)
{
  unsigned mb;
  memcpy(&mb, (const char *)w->config + m->at, sizeof(mb));
  return MIN((uint64_t)mb << 20, disk * m->parts / SMALL_DISK);
}

int storage_room(const struct warden *w, enum storage_for what, struct err *err)
{
  struct statvfs fs;
  const struct mark *m = &marks[what];
  if (statvfs(w->config->data, &fs))
    return err_errno(err, "looking at the disk of %s", w->config->data);
  uint64_t disk = (uint64_t)fs.f_blocks * fs.f_frsize, free = (uint64_t)fs.f_bavail * fs.f_frsize, need = 0;
  for (enum storage_for i = ROOM_FOR_RESUME; i <= what; i++) /* one that is set lower than what goes on longer */
    need = MAX(need, mark_bytes(w, &marks[i], disk));
  uint64_t inodes = (uint64_t)fs.f_files * m->parts / SMALL_DISK;
  if (fs.f_files && fs.f_favail < inodes) /* filesystems that count none say 0 */
    return err_set(err, -ENOSPC, "this server's disk has %" PRIu64 " inodes left of %" PRIu64 ": %s need %" PRIu64,
                   (uint64_t)fs.f_favail, (uint64_t)fs.f_files, m->what, inodes);
  if (free >= need)
    return 0;
  return err_set(err, -ENOSPC,
                 "this server's disk is almost full: %" PRIu64 " MiB are free, and %s need %" PRIu64
                 " (%s); delete what is not needed, or have the operator make room",
                 free >> 20, m->what, need >> 20, m->setting);
}

int storage_left(const struct warden *w, uint64_t *free, uint64_t *stop)
{
  struct statvfs fs;
  if (statvfs(w->config->data, &fs))
    return -errno;
  *free = (uint64_t)fs.f_bavail * fs.f_frsize;
  *stop = mark_bytes(w, &marks[ROOM_FOR_RESUME], (uint64_t)fs.f_blocks * fs.f_frsize);
  return 0;
}

/* ---- uploads ---- */

static struct grant *grant_find(struct warden *w, struct str team, struct str id)
{
  struct storage *s = storage_of(w);
  for (size_t i = 0; i < s->grants.n; i++)
    if (str_is(team, s->grants.p[i].team) && str_is(id, s->grants.p[i].id))
      return &s->grants.p[i];
  return NULL;
}

int storage_grant(struct warden *w, struct str team, struct str id, uint64_t length, uint64_t most, uint64_t *granted,
                  struct err *err)
{
  struct storage_use use;
  size_t open;
  struct grant g = {.until_us = clock_mono_us() + GRANT_US};
  uint64_t limit = LIMIT(w, team, team_storage_mb, storage_max_mb);
  int r = storage_room(w, ROOM_FOR_BUILD, err);
  if (r || (r = str_copyz(team, g.team, sizeof(g.team))) || (r = str_copyz(id, g.id, sizeof(g.id))))
    return r;
  storage_release(w, team, id, -1, -1); /* asked again */
  granted_to(w, team, &open);
  if (open >= GRANTS_MAX)
    return err_set(err, -EAGAIN, "your team has %zu uploads under way and may have %d; wait for one to end", open,
                   GRANTS_MAX);
  use_within(w, team, limit << 20, &use);
  *granted = limit ? (limit << 20) - MIN(use.bytes, limit << 20) : UINT64_MAX;
  if (*granted < counted(length))
    return too_many_bytes(use.bytes + length, use.reserved, (unsigned)limit, err);
  *granted = length ? length : MIN(*granted, most);
  g.bytes = counted(*granted);
  vec_push(&storage_of(w)->grants, g);
  return 0;
}

void storage_release(struct warden *w, struct str team, struct str id, int64_t kept, int64_t replaced)
{
  struct storage *s = storage_of(w);
  struct grant *g = grant_find(w, team, id);
  if (g)
    *g = s->grants.p[--s->grants.n];
  uint64_t more = kept < 0 ? 0 : counted((uint64_t)kept), less = replaced < 0 ? 0 : counted((uint64_t)replaced);
  if (more != less)
    *files_of(w, team) += more - MIN(less, *files_of(w, team) + more);
}
