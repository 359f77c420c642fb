/* SPDX-License-Identifier: Apache-2.0 */
/* content.c - see content.h: the loop, the warden's requests and the threads that do them.
 *
 * A request passes two queues: one that lets few of a volume on at once, then one that lets some of a team on. Uploads
 * are files without a name, kept here by the id that the gate drew until they get one. */
#include "content/content.h"

#include "content/content_confine.h"
#include "content/file_ops.h"
#include "wire/control.h"
#include "wire/fair_queue.h"
#include "wire/ipc.h"
#include "wire/sizes.h"
#include "wire/volume_path.h"
#include "wire/wire.h"
#include <malloc.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define THREAD_STACK ((rlim_t)512 << 10) /* tree_remove.c has 64 levels of calls */
#define DROPPED_US   ((int64_t)600 * 1000000)
#define SWEEP_MS     30000
#define SWEPT_MAX    65536
#define SLICE_US     500000 /* of a removal: then others have the thread */

struct content {
  const struct content_config *config;
  uv_loop_t *loop;
  struct ipc *control, *link;
  struct fair_queue volumes, teams;
  struct map uploads; /* id -> struct upload */
  struct map dropped; /* id -> when (int64_t *): given up before they were open */
  struct map swept;   /* volume -> when its hidden directory was (int64_t *) */
  struct map jobs;    /* struct job_key -> struct job, of the warden */
  uv_timer_t sweeper;
};

struct upload {
  char id[UPLOAD_ID_SIZE], volume[UUID_SIZE], team[UUID_SIZE];
  int fd, root;     /* root: to take it out of the hidden directory again */
  int64_t begun_us; /* a thread looks whether something is written to it, later than this and a while */
  bool looked_at;   /* one does */
};

/* Of a request, and of the link that it came by: another warden begins to count anew. */
struct job_key {
  uint64_t link, id;
};

struct job {
  struct fair_queue_item of_volume; /* first: fair_queue_next gives it */
  struct fair_queue_item of_team;
  uv_work_t work;
  struct content *content;
  struct job_key key; /* id 0: nobody's */
  bool unwanted;      /* who asked has stopped waiting */
  bool look;          /* is something written to the upload? */
  int64_t begun_us;   /* of a removal */
  enum content_op op;
  int root;
  char volume[UUID_SIZE], team[UUID_SIZE], upload_id[UPLOAD_ID_SIZE];
  char path[VOLUME_PATH_SIZE];
  char target[VOLUME_PATH_SIZE]; /* of a link */
  struct file_owner owner;
  bool force, again, sweep;
  uint64_t depth, size;
  struct upload *upload; /* of a commit, which takes it; of a drop */
  /* the answer */
  struct buf json;
  int fd, status;
  struct err err;
};

/* ---- on a thread ---- */

static void upload_close(struct upload *u)
{
  file_discard(u->root, u->id);
  close(u->fd);
  close(u->root);
  free(u);
}

static int commit(struct job *j)
{
  struct str path = str_of(j->path);
  if (j->upload) { /* by the root that it was opened by: files have no second name on another mount */
    const struct upload *u = j->upload;
    bool sync = j->content->config->sync;
    int r = sync ? file_sync(u->fd, path, &j->err) : 0;
    r = r ? r : file_commit(u->root, path, j->upload_id, u->fd, &j->owner, j->force, &j->json, &j->err);
    return r || !sync ? r : file_sync_name(u->root, path, &j->err);
  }
  if (j->again && file_is(j->root, path, &j->owner, j->size, &j->json))
    return 0;
  return err_set(&j->err, -ESHUTDOWN, "the upload was interrupted on the server; send the file again");
}

static int list(struct job *j)
{
  const struct content_config *c = j->content->config;
  struct list_limits limits = {c->listing_max, c->listing_s, c->listing_mb};
  j->fd = file_list(j->root, str_of(j->path), j->depth, &limits, &j->size, &j->err);
  return MIN(j->fd, 0);
}

static int act_on(struct job *j)
{
  struct str path = str_of(j->path);
  switch (j->op) {
  case CONTENT_STAT:
    return file_stat(j->root, path, &j->json, &j->err);
  case CONTENT_CHANGE:
    return file_change(j->root, path, &j->owner, &j->json, &j->err);
  case CONTENT_REMOVE:
    return file_remove(j->root, path, j->again, clock_mono_us() + SLICE_US, &j->err);
  case CONTENT_LIST:
    return list(j);
  case CONTENT_MKDIR:
    return file_mkdir(j->root, path, &j->owner, j->force, j->again, &j->json, &j->err);
  case CONTENT_READ:
    j->fd = file_open(j->root, path, &j->size, &j->err);
    return MIN(j->fd, 0);
  case CONTENT_UPLOAD:
    j->fd = file_upload(j->root, path, j->upload_id, j->size, j->force, &j->err);
    return MIN(j->fd, 0);
  case CONTENT_COMMIT:
    return commit(j);
  case CONTENT_DROP:
    return 0;
  case CONTENT_LINK:
    return file_link(j->root, path, j->target, &j->owner, &j->err);
  }
  return err_set(&j->err, -EINVAL, "no such operation");
}

static void act(uv_work_t *work)
{
  struct job *j = work->data;
  if (j->sweep)
    file_sweep(j->root, j->content->config->upload_idle_s);
  j->sweep = false;
  j->status = act_on(j);
  if (j->op == CONTENT_REMOVE && j->status == -EAGAIN) {
    j->again = true; /* what it names may go with the next slice */
    return;
  }
  if (j->upload)
    upload_close(steal(&j->upload));
  if (j->root >= 0)
    close(steal_fd(&j->root));
}

/* ---- uploads ---- */

/* Whether it would be one too many: of all, of its team or of its volume. */
static bool too_many(struct content *c, const struct job *j)
{
  size_t of_volume = 0, of_team = 0;
  void *value;
  if (j->op != CONTENT_UPLOAD)
    return false;
  for (size_t i = 0; map_next(&c->uploads, &i, NULL, &value);) {
    const struct upload *u = value;
    of_volume += !strcmp(u->volume, j->volume);
    of_team += !strcmp(u->team, j->team);
  }
  return c->uploads.n >= c->config->uploads || of_volume >= c->config->own_uploads ||
         of_team >= c->config->team_uploads;
}

static struct upload *upload_take(struct content *c, const struct job *j)
{
  struct upload *u = map_get(&c->uploads, str_of(j->upload_id));
  if (!u || strcmp(u->volume, j->volume) != 0)
    return NULL;
  map_del(&c->uploads, str_of(j->upload_id));
  return u;
}

static void upload_keep(struct content *c, const struct job *j, int root)
{
  struct upload *u = xcalloc(1, sizeof(*u));
  memcpy(u->id, j->upload_id, sizeof(u->id));
  memcpy(u->volume, j->volume, sizeof(u->volume));
  memcpy(u->team, j->team, sizeof(u->team));
  u->fd = dup(j->fd);
  u->root = root;
  u->begun_us = clock_mono_us();
  map_put(&c->uploads, str_of(u->id), u);
}

/* Whether to look for what processes that died have left: when this one first sees the volume, then now and again. */
static bool sweep_due(struct content *c, const struct job *j)
{
  int64_t *when = map_get(&c->swept, str_of(j->volume)), now = clock_mono_us();
  void *value;
  if (when && now - *when < (int64_t)c->config->upload_idle_s * 1000000)
    return false;
  if (!when && c->swept.n >= SWEPT_MAX) {
    for (size_t i = 0; map_next(&c->swept, &i, NULL, &value);)
      free(value);
    map_free(&c->swept);
  }
  if (!when) {
    when = xmalloc(sizeof(*when));
    map_put(&c->swept, str_of(j->volume), when);
  }
  *when = now;
  return true;
}

/* Its client left before it was open: it is closed when it is. */
static void drop_later(struct content *c, const struct job *j)
{
  int64_t *when = c->dropped.n < c->config->uploads ? xmalloc(sizeof(*when)) : NULL;
  if (!when)
    return;
  *when = clock_mono_us();
  free(map_put(&c->dropped, str_of(j->upload_id), when));
}

/* ---- requests ---- */

static struct str key_of(const struct job *j)
{
  return str_make(&j->key, sizeof(j->key));
}

static void job_free(struct job *j)
{
  if (j->key.id && map_get(&j->content->jobs, key_of(j)) == j)
    map_del(&j->content->jobs, key_of(j));
  if (j->root >= 0)
    close(j->root);
  if (j->fd >= 0)
    close(j->fd);
  buf_free(&j->json);
  free(j);
}

static void reply(struct job *j)
{
  struct content *c = j->content;
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  if (!c->link || ipc_serial(c->link) != j->key.link || !j->key.id || j->unwanted)
    return;
  wire_begin(&b, WIRE_REPLY, j->key.id, j->status);
  if (j->status)
    wire_putz(&b, W_MESSAGE, j->err.msg);
  else if (j->json.n)
    wire_put(&b, W_BODY, buf_str(&j->json));
  if (!j->status && j->fd >= 0)
    wire_put_u64(&b, W_COUNT, j->size);
  ipc_send(c->link, buf_str(&b), j->status ? -1 : j->fd);
}

static void pump(struct content *c);
static void act_upload(uv_work_t *work);
static void upload_done(uv_work_t *work, int status);
static void look(uv_work_t *work);
static void looked(uv_work_t *work, int status);

/* A removal has its turn again after a slice, up to a time. */
static bool goes_on(struct job *j)
{
  if (j->op != CONTENT_REMOVE || j->status != -EAGAIN)
    return false;
  unsigned most = j->content->config->removal_s;
  if (!j->unwanted && clock_mono_us() - j->begun_us < (int64_t)most * 1000000) {
    j->err = ERR_NONE;
    return true;
  }
  j->status = err_set(&j->err, -EBUSY,
                      "'%s' is not deleted yet: it has more files than are deleted in %u seconds (setting "
                      "volume_removal_seconds); try again to go on",
                      j->path, most);
  return false;
}

static void done(uv_work_t *work, int status)
{
  struct job *j = work->data;
  struct content *c = j->content;
  fair_queue_done(&c->teams, &j->of_team);
  fair_queue_done(&c->volumes, &j->of_volume);
  if (goes_on(j)) {
    fair_queue_push(&c->volumes, str_of(j->volume), &j->of_volume);
  } else {
    reply(j);
    job_free(j);
  }
  pump(c);
}

/* of_team is where the second queue finds the job. */
static struct job *job_of_team(struct fair_queue_item *i)
{
  return (struct job *)((char *)i - offsetof(struct job, of_team));
}

static void pump(struct content *c)
{
  for (struct job *j; (j = (struct job *)fair_queue_next(&c->volumes));)
    fair_queue_push(&c->teams, str_of(j->team), &j->of_team);
  for (struct fair_queue_item *i; (i = fair_queue_next(&c->teams));) {
    struct job *j = job_of_team(i);
    bool upload = j->op == CONTENT_UPLOAD;
    uv_queue_work(c->loop, &j->work,
                  j->look  ? look
                  : upload ? act_upload
                           : act,
                  j->look  ? looked
                  : upload ? upload_done
                           : done);
  }
}

static uint32_t number(struct str packet, enum wire_tag tag)
{
  return (uint32_t)MIN(wire_u64(packet, tag, OWNER_KEEP), (uint64_t)OWNER_KEEP);
}

/* NULL: malformed. Takes root. */
static struct job *job_read(struct content *c, struct str packet, int root)
{
  struct job *j = xcalloc(1, sizeof(*j));
  *j = (struct job){.content = c,
                    .key = {ipc_serial(c->link), wire_head(packet)->id},
                    .begun_us = clock_mono_us(),
                    .op = (enum content_op)wire_u64(packet, W_OP, 0),
                    .root = root,
                    .fd = -1,
                    .owner = {number(packet, W_UID), number(packet, W_GID), number(packet, W_PERMISSIONS),
                              (int64_t)MIN(wire_u64(packet, W_UPDATED, INT64_MAX), (uint64_t)INT64_MAX)},
                    .force = wire_u64(packet, W_FORCE, 0) == 1,
                    .again = (wire_head(packet)->status & WIRE_AGAIN) != 0,
                    .depth = wire_u64(packet, W_DEPTH, 1),
                    .size = wire_u64(packet, W_COUNT, UINT64_MAX),
                    .json = BUF_INIT(64 << 10)};
  j->work.data = j;
  bool upload = j->op == CONTENT_UPLOAD || j->op == CONTENT_COMMIT || j->op == CONTENT_DROP;
  bool good = root >= 0 && (j->op != CONTENT_LINK || !wire_copyz(packet, W_TARGET, j->target, sizeof(j->target))) &&
              !wire_copyz(packet, W_ID, j->volume, sizeof(j->volume)) &&
              !wire_copyz(packet, W_TEAM, j->team, sizeof(j->team)) &&
              (j->op == CONTENT_DROP ||
               (!wire_copyz(packet, W_PATH, j->path, sizeof(j->path)) && volume_path_valid(str_of(j->path)))) &&
              (!upload || (!wire_copyz(packet, W_UPLOAD, j->upload_id, sizeof(j->upload_id)) &&
                           volume_upload_valid(str_of(j->upload_id))));
  if (good)
    return j;
  job_free(j);
  return NULL;
}

static void refuse(struct content *c, uint64_t id, int status, const char *why)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  wire_begin(&b, WIRE_REPLY, id, status);
  wire_putz(&b, W_MESSAGE, why);
  ipc_send(c->link, buf_str(&b), -1);
}

/* On a thread: the last descriptor of a large file may take its time. It is no longer in the map. */
static void give_up(struct content *c, struct upload *u)
{
  struct job *j = xcalloc(1, sizeof(*j));
  *j = (struct job){.content = c, .op = CONTENT_DROP, .root = -1, .fd = -1, .upload = u, .json = BUF_INIT(1)};
  memcpy(j->volume, u->volume, sizeof(j->volume));
  memcpy(j->team, u->team, sizeof(j->team));
  j->work.data = j;
  fair_queue_push(&c->volumes, str_of(j->volume), &j->of_volume);
}

/* The volume was deleted. What is being opened at this moment goes when the warden says it again. */
static void forget(struct content *c, struct str volume)
{
  void *value;
  for (size_t i = 0; map_next(&c->uploads, &i, NULL, &value);) {
    struct upload *u = value;
    if (!str_is(volume, u->volume))
      continue;
    map_del(&c->uploads, str_of(u->id));
    give_up(c, u);
  }
  free(map_del(&c->swept, volume));
  pump(c);
}

static void upload_done(uv_work_t *work, int status)
{
  struct job *j = work->data;
  int root = steal_fd(&j->root);
  struct upload *older = j->status ? NULL : upload_take(j->content, j);
  if (older) /* asked again after the warden had died: nobody has its descriptor */
    give_up(j->content, older);
  void *dropped = map_del(&j->content->dropped, str_of(j->upload_id));
  if (!j->status)
    upload_keep(j->content, j, root);
  if (!j->status && (dropped || j->unwanted))
    give_up(j->content, upload_take(j->content, j));
  free(dropped);
  done(work, status);
}

static void act_upload(uv_work_t *work)
{
  struct job *j = work->data;
  if (j->sweep)
    file_sweep(j->root, j->content->config->upload_idle_s);
  j->status = act_on(j);
  if (j->status)
    close(steal_fd(&j->root));
}

/* Nobody waits for it. What has not begun does not begin; what runs is of no use to anybody but goes on to its end. */
static void cancel(struct content *c, uint64_t id)
{
  struct job_key key = {ipc_serial(c->link), id};
  struct job *j = map_get(&c->jobs, str_make(&key, sizeof(key)));
  if (!j)
    return;
  j->unwanted = true;
  if (fair_queue_cancel(&c->teams, &j->of_team))
    fair_queue_done(&c->volumes, &j->of_volume);
  else if (!fair_queue_cancel(&c->volumes, &j->of_volume))
    return;
  if (j->upload)
    give_up(c, steal(&j->upload));
  job_free(j);
  pump(c);
}

/* What needs no thread; true: done. */
static bool at_once(struct content *c, struct str packet)
{
  cleanup_buf struct buf b = BUF_INIT(64);
  switch (wire_head(packet)->type) {
  case WIRE_CONTENT_FORGET:
    forget(c, wire_get(packet, W_ID));
    return true;
  case WIRE_CONTENT_CANCEL:
    cancel(c, wire_head(packet)->id);
    return true;
  case WIRE_CONTENT_PING:
    wire_begin(&b, WIRE_CONTENT_PING, 0, 0);
    ipc_send(c->link, buf_str(&b), -1);
    return true;
  default:
    return false;
  }
}

static void warden_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct content *c = arg;
  if (!wire_check(packet) && c->link == l && fd < 0 && at_once(c, packet))
    return;
  if (wire_check(packet) || wire_head(packet)->type != WIRE_CONTENT || c->link != l) {
    log_error("malformed packet of %zu bytes from the warden", packet.n);
    if (fd >= 0)
      close(fd);
    return;
  }
  struct job *j = job_read(c, packet, fd);
  if (!j) {
    refuse(c, wire_head(packet)->id, -EINVAL, "malformed request");
    return;
  }
  if (too_many(c, j)) {
    refuse(c, j->key.id, -EAGAIN,
           "too many uploads are under way into this volume, or of this team (settings volume_own_uploads, "
           "volume_team_uploads, volume_uploads); try again when some have ended");
    job_free(j);
    return;
  }
  if (j->op == CONTENT_COMMIT || j->op == CONTENT_DROP)
    j->upload = upload_take(c, j);
  if (j->op == CONTENT_DROP && !j->upload)
    drop_later(c, j);
  j->sweep = sweep_due(c, j);
  map_put(&c->jobs, key_of(j), j);
  fair_queue_push(&c->volumes, str_of(j->volume), &j->of_volume);
  pump(c);
}

static void warden_closed(struct ipc *l, void *arg)
{
  struct content *c = arg;
  if (c->link == l)
    c->link = NULL;
  ipc_free(l);
}

static const struct ipc_ops warden_ops = {warden_packet, warden_closed};

/* ---- the supervisor ---- */

static void control_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct content *c = arg;
  if (packet.p[0] == CONTROL_LINK && fd >= 0)
    c->link = ipc_new(c->loop, steal_fd(&fd), &warden_ops, c);
  if (fd >= 0)
    close(fd);
  control_settings(packet);
  if (packet.p[0] == CONTROL_STOP)
    uv_stop(c->loop);
}

static void control_closed(struct ipc *l, void *arg)
{
  struct content *c = arg;
  uv_stop(c->loop);
}

static const struct ipc_ops control_ops = {control_packet, control_closed};

/* ---- uploads that nobody finishes ---- */

static void look(uv_work_t *work)
{
  struct job *j = work->data;
  struct stat st;
  int64_t now = clock_wall_us() / 1000000;
  j->status = fstat(j->fd, &st) || now - (int64_t)st.st_mtim.tv_sec >= (int64_t)j->content->config->upload_idle_s;
}

static void looked(uv_work_t *work, int status)
{
  struct job *j = work->data;
  struct upload *u = map_get(&j->content->uploads, str_of(j->upload_id));
  if (u)
    u->looked_at = false;
  if (u && j->status)
    give_up(j->content, upload_take(j->content, j));
  done(work, status);
}

/* On a thread, and by a descriptor of its own: the filesystem may stand still, and the upload may be given up. */
static void look_at(struct content *c, struct upload *u)
{
  struct job *j = xcalloc(1, sizeof(*j));
  *j = (struct job){.content = c, .op = CONTENT_DROP, .look = true, .root = -1, .fd = dup(u->fd), .json = BUF_INIT(1)};
  memcpy(j->upload_id, u->id, sizeof(j->upload_id));
  memcpy(j->volume, u->volume, sizeof(j->volume));
  memcpy(j->team, u->team, sizeof(j->team));
  j->work.data = j;
  u->looked_at = true;
  fair_queue_push(&c->volumes, str_of(j->volume), &j->of_volume);
}

/* A gate that lives writes, or gives an upload up by itself; one that died says nothing. */
static void sweep(uv_timer_t *t)
{
  struct content *c = t->data;
  int64_t now = clock_mono_us();
  struct str id;
  void *value;
  for (size_t i = 0; map_next(&c->dropped, &i, &id, &value);)
    if (clock_mono_us() - *(int64_t *)value > DROPPED_US)
      free(map_del(&c->dropped, id));
  for (size_t i = 0; map_next(&c->uploads, &i, NULL, &value);) {
    struct upload *u = value;
    if (!u->looked_at && now - u->begun_us > (int64_t)c->config->upload_idle_s * 1000000)
      look_at(c, u);
  }
  pump(c);
}

/* ---- start ---- */

static void nothing(uv_work_t *work)
{
}

static void nothing_done(uv_work_t *work, int status)
{
}

/* The first work makes libuv start all of them. */
static void start_threads(void *arg)
{
  struct content *c = arg;
  static uv_work_t first;
  uv_queue_work(c->loop, &first, nothing, nothing_done);
}

static void bound_threads(unsigned threads)
{
  struct rlimit stack;
  char number[16];
  snprintf(number, sizeof(number), "%u", threads);
  setenv("UV_THREADPOOL_SIZE", number, 1);
  mallopt(M_ARENA_MAX, 4);
  getrlimit(RLIMIT_STACK, &stack);
  stack.rlim_cur = MIN(stack.rlim_max, THREAD_STACK);
#ifndef __SANITIZE_ADDRESS__
  setrlimit(RLIMIT_STACK, &stack);
#endif
}

int content_main(const struct content_config *config)
{
  static uv_loop_t loop;
  static struct content c; /* to the process's end: what it still holds then was not lost */
  struct err err = ERR_NONE;
  prctl(PR_SET_NAME, "cloche-content");
  clearenv();
  bound_threads(config->threads);
  uv_loop_init(&loop);
  c = (struct content){.config = config,
                       .loop = &loop,
                       .volumes = {.places = UINT32_MAX, .share = config->own_threads},
                       .teams = {.places = config->threads, .share = config->team_threads}};
  c.control = ipc_new(&loop, CONTROL_FD, &control_ops, &c);
  uv_timer_init(&loop, &c.sweeper);
  c.sweeper.data = &c;
  uv_timer_start(&c.sweeper, sweep, SWEEP_MS, SWEEP_MS);
  if (file_ops_open(&err) || content_confine(start_threads, &c, &err))
    return control_failed(c.control, &err);
  ipc_send(c.control, (struct str){(char[]){CONTROL_READY}, 1}, -1);
  uv_run(&loop, UV_RUN_DEFAULT);
  return 0;
}
