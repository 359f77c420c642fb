/* SPDX-License-Identifier: Apache-2.0 */
/* warden.c - the warden's loop: its start, its timers, its connections and its end. The only file that knows all
 * modules: nothing includes warden.h but the command line. */
#include "warden/warden.h"

#include "jail/jail.h"
#include "jail/fs/disk_pool.h"
#include "warden/core/quota.h"
#include "warden/warm/ns_pool.h"
#include "warden/box/disk_guard.h"
#include "warden/box/memory_guard.h"
#include "warden/box/box.h"
#include "warden/box/box_compress.h"
#include "warden/box/box_create_once.h"
#include "warden/box/box_recover.h"
#include "warden/box/box_sample.h"
#include "warden/box/volume_watch.h"
#include "warden/rpc/handlers.h"
#include "warden/rpc/rpc.h"
#include "wire/box_socket.h"
#include "warden/build/builder.h"
#include "warden/box/fork.h"
#include "warden/core/checkpoint_store.h"
#include "wire/control.h"
#include "warden/build/gc.h"
#include "warden/warm/warm_pool.h"
#include "warden/box/pause.h"
#include "warden/box/transition.h"
#include "warden/core/warden_state.h"
#include "warden/warm/nursery_request.h"
#include "warden/core/cluster.h"
#include "warden/core/egress.h"
#include "warden/core/event_keep.h"
#include "warden/build/runtime_layer.h"
#include "warden/core/host_limits.h"
#include "warden/core/telemetry.h"
#include "warden/core/microvm.h"
#include "warden/core/net_log.h"
#include "warden/core/node.h"
#include "warden/core/worker_pool.h"
#include "warden/core/storage_quota.h"
#include "warden/egress/keep.h"
#include "warden/egress/policies.h"
#include "warden/rpc/login.h"
#include "warden/rpc/root_audit.h"
#include "warden/secret/secrets.h"
#include "warden/core/team_meter.h"
#include "warden/warm/zygote.h"
#include "warden/volume/volume_content.h"
#include "warden/volume/volumes.h"
#include "warden/webhook/webhooks.h"
#include <malloc.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define SAMPLE_MS     5000
#define TURN_TRIES    1500 /* 30 s in all */
#define TURN_PAUSE_MS 20
#define HOUR_US       3600000000LL
#define HOUSEKEEP_MS  30000
#define REFILL_MS     20 /* a box that was just given out has the cores for its first request */

/* What only this file needs, beside what the modules share. */
struct root {
  struct warden w; /* first: callbacks get a pointer to it */
  struct ipc *control;
  uv_poll_t admin; /* commands of the host's root user */
  int admin_fd;
  uv_check_t after;
  uv_timer_t sampler, housekeeper, refiller;
  int64_t gc_us; /* when garbage is collected next */
};

static struct root *root_of(struct warden *w)
{
  return (struct root *)w;
}

/* ---- hooks ---- */

static bool zygote_in_use(struct warden *w, const struct zygote *z)
{
  return warm_pool_stands_on(w, z) || builder_enters(w, z);
}

static void zygote_changed(struct warden *w, bool ready)
{
  nursery_requests_answer(w);
  if (ready)
    warm_pool_maintain(w);
}

static size_t clear_layers(struct warden *w, struct str team)
{
  return gc_run(w, &(struct gc_params){.team = team});
}

static void end_builds(struct warden *w)
{
  struct job *const *jobs;
  size_t n = builder_jobs(w, &jobs);
  for (size_t i = 0; i < n; i++)
    if (jobs[i]->row.state == JOB_BUILDING)
      builder_cancel(w, str_of(jobs[i]->row.team), str_of(jobs[i]->row.id),
                     "this server's disk is almost full (disk_stop_mb): build again when there is room");
}

static const struct warden_hooks hooks = {
    .checkpoint_borrowed = builder_borrows,
    .zygote_in_use = zygote_in_use,
    .zygote_changed = zygote_changed,
    .box_expired = box_expire,
    .box_chosen = box_relieve,
    .box_abandoned = box_abandon_transition,
    .build_released = fork_release,
    .clear_layers = clear_layers,
    .disk_short = end_builds,
};

/* ---- stopping ---- */

static void leave_when_clear(uv_timer_t *t)
{
  struct warden *w = t->data;
  if (!w->removals && !w->launches && !w->transitions && !builder_busy(w) && !secrets_busy(w))
    uv_stop(w->loop);
}

static void warden_stop(struct warden *w, bool end_boxes)
{
  if (w->stopping)
    return;
  w->stopping = true;
  log_info(end_boxes ? "stopping; %zu boxes end" : "stopping; %zu boxes stay", w->boxes.n);
  warm_pool_drain(w);
  ns_pool_drain(w);
  zygote_stop_all(w);
  builder_stop(w, !end_boxes);
  void *value;
  for (bool any = end_boxes; any;) {
    any = false;
    for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
      struct box *b = value;
      bool starting = b->row.state == BOX_STARTING;
      if (b->on_disk && (!b->transition || b->row.state == BOX_PAUSED)) /* needs no server to be kept */
        continue;
      box_end(b, "stopped: the server was shut down");
      any |= !starting;
      if (!starting)
        break;
    }
  }
  uv_timer_start(&root_of(w)->housekeeper, leave_when_clear, 0, 5);
}

/* ---- the supervisor ---- */

static void set_disks(const struct warden_config *c)
{
  disk_pool_set(
      &(struct disk_pool_rules){.ready = c->disks_ready,
                                .kept = c->disks_kept,
                                .wipe = {.files = c->disk_wipe_files, .bytes = (uint64_t)c->disk_wipe_mb << 20}});
}

static void bound_store(struct warden *w)
{
  store_bound(w->store, (uint64_t)w->config->store_log_mb << 20, (int64_t)w->config->store_read_s * 1000000);
}

/* What is not read from the config each time. */
static void settings_changed(struct warden *w)
{
  set_disks(w->config);
  bound_store(w);
  checkpoints_limit(w);
  if (!w->stopping)
    warm_pool_maintain(w);
}

static void control_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct warden *w = arg;
  if (packet.p[0] == CONTROL_LINK && fd >= 0) {
    box_socket_guard(fd); /* a gate gets messages and descriptors; it sends no descriptors */
    struct ipc *gate = rpc_accept(w, fd, PEER_GATE);
    cleanup_buf struct buf b = BUF_INIT(4096);
    wire_begin(&b, WIRE_HELLO, 0, 0);
    wire_putz(&b, W_DOMAIN, w->config->domain);
    wire_put_u64(&b, W_ADMIN, w->config->admin_token[0] != 0);
    ipc_send(gate, buf_str(&b), id_filter_fd(w->ids));
    return;
  }
  if (packet.p[0] == CONTROL_EGRESS && fd >= 0) {
    policies_link(w, fd);
    return;
  }
  if (packet.p[0] == CONTROL_STORE && fd >= 0) {
    cluster_link(w, fd);
    return;
  }
  if (packet.p[0] == CONTROL_SENDER && fd >= 0) {
    webhooks_link(w, fd);
    return;
  }
  if (packet.p[0] == CONTROL_AUDIT && fd >= 0) {
    root_audit_link(w, fd);
    return;
  }
  if (packet.p[0] == CONTROL_EXPORTER && fd >= 0) {
    telemetry_link(w, fd);
    return;
  }
  if (packet.p[0] == CONTROL_CONTENT && fd >= 0) {
    volume_content_link(w, fd);
    return;
  }
  if (fd >= 0)
    close(fd);
  if (control_settings(packet))
    settings_changed(w);
  if (packet.p[0] == CONTROL_STOP || packet.p[0] == CONTROL_STOP_ALL)
    warden_stop(w, packet.p[0] == CONTROL_STOP_ALL);
}

static void control_closed(struct ipc *l, void *arg)
{
  struct warden *w = arg;
  warden_stop(w, false);
}

static const struct ipc_ops control_ops = {control_packet, control_closed};

static void report(struct warden *w, char letter, const char *text)
{
  char message[600];
  int n = snprintf(message, sizeof(message), "%c%s", letter, text);
  ipc_send(root_of(w)->control, (struct str){message, (size_t)MIN(n, (int)sizeof(message) - 1)}, -1);
}

static void content_hung(struct warden *w)
{
  report(w, CONTROL_HUNG, "");
}

/* ---- the socket of the host's root user ---- */

static void on_admin_connect(uv_poll_t *poll, int status, int events)
{
  struct warden *w = poll->data;
  int fd = accept4(root_of(w)->admin_fd, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0)
    return;
  struct ucred who = {.uid = (uid_t)-1};
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &(socklen_t){sizeof(who)}) || who.uid != geteuid()) {
    log_warn("user %u connected to the warden's socket; only the server's own user may", (unsigned)who.uid);
    close(fd);
    return;
  }
  rpc_accept(w, fd, PEER_ROOT);
}

static int open_admin_socket(struct warden *w, struct err *err)
{
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  if ((size_t)snprintf(a.sun_path, sizeof(a.sun_path), "%s/warden.sock", w->config->data) >= sizeof(a.sun_path))
    return err_set(err, -ENAMETOOLONG, "data directory %s: the path is too long for a socket in it", w->config->data);
  unlink(a.sun_path);
  root_of(w)->admin_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  mode_t old = umask(0177);
  int r = root_of(w)->admin_fd < 0 || bind(root_of(w)->admin_fd, (struct sockaddr *)&a, sizeof(a)) ||
                  listen(root_of(w)->admin_fd, 16)
              ? err_errno(err, "socket %s", a.sun_path)
              : 0;
  umask(old);
  if (r)
    return r;
  uv_poll_init(w->loop, &root_of(w)->admin, root_of(w)->admin_fd);
  root_of(w)->admin.data = w;
  uv_poll_start(&root_of(w)->admin, UV_READABLE, on_admin_connect);
  return 0;
}

/* ---- start ---- */

/* One warden at a time: one whose supervisor was killed is given time to finish. A lock of the process, so that nothing
 * it forked can hold it. */
static int wait_for_lock(const struct warden *w, struct err *err)
{
  char path[PATH_MAX];
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  snprintf(path, sizeof(path), "%s/warden.lock", w->config->data);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* open until the end */
  if (fd < 0)
    return err_errno(err, "%s", path);
  for (int i = 0; fcntl(fd, F_SETLK, &whole); i++) {
    if (i == TURN_TRIES)
      return err_set(err, -EBUSY, "another warden still works in %s", w->config->data);
    poll(NULL, 0, TURN_PAUSE_MS);
  }
  return 0;
}

static int open_data(struct warden *w, struct err *err)
{
  char path[PATH_MAX];
  static const char *const dirs[] = {"", "/boxes", "/runtime"};
  for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
    snprintf(path, sizeof(path), "%s%s", w->config->data, dirs[i]);
    int r = path_mkdirs(path, 0700);
    if (r)
      return err_set(err, r, "data directory %s: %s", path, strerrordesc_np(-r));
  }
  int r = wait_for_lock(w, err);
  if (r)
    return r;
  snprintf(path, sizeof(path), "%s/cloche.db", w->config->data);
  umask(0077);
  r = store_open(path, &w->store, err);
  umask(0022);
  if (!r)
    bound_store(w);
  return r;
}

/* A value that is drawn once and kept. */
static int load_persistent(struct warden *w, const char *name, size_t bytes, char *out, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(256);
  if (!store_meta_get(w->store, name, &b) && b.n == 2 * bytes)
    return str_copyz(buf_str(&b), out, 2 * bytes + 1);
  uint8_t raw[SHA256_LEN];
  random_bytes(raw, bytes);
  hex_encode(raw, bytes, out);
  return store_meta_put(w->store, name, str_of(out), err);
}

static bool runtime_used(const char *name, void *arg)
{
  struct warden *w = arg;
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);)
    if (!strcmp(((struct box *)value)->row.runtime, name))
      return true;
  struct build *const *list;
  size_t n = catalog_builds(w->catalog, &list);
  for (size_t i = 0; i < n; i++)
    if (list[i]->row.checkpoint[0] && !strcmp(list[i]->row.runtime, name))
      return true;
  return !strcmp(name, w->runtime);
}

static int warden_open(struct warden *w, char first_key[KEY_TEXT], struct err *err)
{
  int r = open_data(w, err);
  r = r ? r : load_persistent(w, "instance", 4, w->instance, err);
  if (!r)
    node_open(w);
  r = r ? r : cluster_open(w, warden_status, err);
  struct err why = ERR_NONE;
  if (!r && egress_open(w, &why)) /* before any secret is read: its processes go on as copies of this one */
    log_warn("outbound networking disabled: %s", why.msg);
  r = r ? r : load_persistent(w, "secret", SHA256_LEN, w->secret, err);
  r = r ? r : secrets_open(w, err); /* first of all that may fork: it takes the key out of the environment */
  r = r ? r : catalog_open(w->store, &w->catalog, first_key, err);
  r = r ? r : builder_open(w, err);
  r = r ? r : webhooks_open(w, err);
  if (!r)
    volume_content_open(w, content_hung);
  if (!r)
    volumes_open(w);
  r = r ? r : runtime_stage(w->config->runtime, w->config->data, w->runtime, err);
  r = r ? r : jail_instance_open(w->instance, err);
  if (!r)
    r = (w->ids = id_filter_new(err)) ? 0 : err->code;
  if (r)
    return r;
  why = ERR_NONE;
  set_disks(w->config);
  host_limits_raise(w);
  policies_open(w);
  if (catalog_import(w->catalog, w->config->templates, &why))
    log_warn("templates in %s: %s", w->config->templates, why.msg);
  if (box_recover(w, &why))
    log_warn("sweep: %s", why.msg);
  egress_seal_rules(w);
  net_log_listen(w);
  fork_sweep(w);
  checkpoints_sweep(w);
  layers_sweep(w);
  checkpoints_open(w);
  microvm_open(w);
  runtime_sweep(w->config->data, runtime_used, w);
  return open_admin_socket(w, err);
}

static void sample(uv_timer_t *t)
{
  box_sample_all(t->data);
  team_meter_tick(t->data);
  box_compress_idle(t->data);
  volume_watch_tick(t->data);
}

static void checkpoint_work(uv_work_t *work)
{
  struct warden *w = work->data;
  store_checkpoint(w->store);
}

static void checkpoint_done(uv_work_t *work, int status)
{
  free(work);
}

static void refill_now(uv_timer_t *t)
{
  struct warden *w = t->data;
  if (!w->stopping)
    warm_pool_maintain(w);
}

/* After everything that was asked in this turn of the loop is answered. */
static void refill(uv_check_t *check)
{
  struct warden *w = check->data;
  if (!w->refill || w->stopping)
    return;
  w->refill = false;
  if (warm_pool_low(w))
    warm_pool_maintain(w);
  else if (!uv_is_active((uv_handle_t *)&root_of(w)->refiller))
    uv_timer_start(&root_of(w)->refiller, refill_now, REFILL_MS, 0);
}

/* The templates everyone has are hot from the start. */
static void warm_up_templates(struct warden *w)
{
  struct template *const *list;
  size_t n = catalog_templates(w->catalog, &list);
  for (size_t i = 0; i < n; i++) {
    struct build *b = catalog_default(list[i]);
    if (b && list[i]->row.public)
      warm_pool_warm_up(w, b);
  }
}

/* Once a day; the first time an hour after the start. */
static void run_gc(struct warden *w)
{
  int64_t now = clock_mono_us();
  root_of(w)->gc_us = root_of(w)->gc_us ? root_of(w)->gc_us : now + HOUR_US;
  if (now < root_of(w)->gc_us)
    return;
  root_of(w)->gc_us = now + 24 * HOUR_US;
  size_t n = gc_run(w, &(struct gc_params){.unused_s = (int64_t)w->config->cache_days * 86400});
  if (n)
    log_info("%zu layers, uploads or fetched images that nothing needs were removed", n);
}

static void housekeep(uv_timer_t *t)
{
  struct warden *w = t->data;
  warm_pool_maintain(w);
  catalog_flush(w->catalog);
  store_forget_ended(w->store, clock_wall_us() - (int64_t)w->config->keep_ended_s * 1000000);
  box_create_once_forget(w);
  team_meter_forget(w);
  store_log_trim(w->store, (uint64_t)w->config->log_keep_mb << 20);
  events_keep(w);
  builder_expire(w);
  login_expire(w);
  run_gc(w);
  checkpoints_clear_heaps(w);
  uv_work_t *work = xcalloc(1, sizeof(*work));
  work->data = w;
  worker_pool_queue(w, "", work, checkpoint_work, checkpoint_done);
}

static void open_timers(struct root *root)
{
  uv_timer_t *const timers[] = {&root->sampler, &root->housekeeper, &root->refiller};
  for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
    uv_timer_init(root->w.loop, timers[i]);
    timers[i]->data = &root->w;
  }
}

static void start_timers(struct root *root)
{
  uv_timer_start(&root->sampler, sample, 500, SAMPLE_MS);
  memory_guard_start(&root->w);
  disk_guard_start(&root->w);
  uv_timer_start(&root->housekeeper, housekeep, HOUSEKEEP_MS, HOUSEKEEP_MS);
  uv_check_init(root->w.loop, &root->after);
  root->after.data = &root->w;
  uv_check_start(&root->after, refill);
}

static void raise_file_limit(void)
{
  struct rlimit files = {1 << 20, 1 << 20};
  if (!setrlimit(RLIMIT_NOFILE, &files))
    return;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

static void warden_close(struct warden *w)
{
  catalog_flush(w->catalog);
  if (!w->live) {
    egress_close(w);
    host_limits_restore(w);
    jail_instance_close(w->instance);
  }
  quotas_free(w);
  storage_free(w);
  builder_close(w);
  webhooks_close(w);
  cluster_close(w);
  volume_content_close(w);
  secrets_close(w);
  catalog_close(w->catalog);
  store_checkpoint(w->store);
  store_close(w->store);
}

/* The key is there at the very first start only; a code for the console at each. */
static void report_ready(struct warden *w, const char *first_key)
{
  char text[KEY_TEXT + LOGIN_CODE_TEXT + 1], code[LOGIN_CODE_TEXT] = "";
  const struct row_team *t = catalog_first_team(w->catalog);
  if (t)
    login_code_for(w, str_of(t->id), code);
  snprintf(text, sizeof(text), "%s\n%s", first_key, code);
  malloc_trim(0); /* what the start needed */
  report(w, CONTROL_READY, text);
  explicit_bzero(text, sizeof(text));
}

int warden_main(const struct warden_config *config)
{
  static uv_loop_t loop;
  static struct root root; /* to the process's end: what it still holds then was not leaked */
  struct warden *w = &root.w;
  struct err err = ERR_NONE;
  char first_key[KEY_TEXT];
  *w = (struct warden){.config = config, .hooks = &hooks, .loop = &loop, .started_us = clock_wall_us()};
  prctl(PR_SET_NAME, "cloche-warden");
  raise_file_limit();
  worker_pool_open(w);
  uv_loop_init(&loop);
  open_timers(&root);
  root.control = ipc_new(&loop, CONTROL_FD, &control_ops, w);
  if (warden_open(w, first_key, &err)) {
    log_error("%s", err.msg);
    report(w, CONTROL_FAILED, err.msg);
    return 1;
  }
  start_timers(&root);
  warm_up_templates(w);
  report_ready(w, first_key);
  builder_go_on(w);
  uv_run(&loop, UV_RUN_DEFAULT);
  warden_close(w);
  return 0;
}
