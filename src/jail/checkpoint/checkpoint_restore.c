/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_restore.c - a checkpoint becomes a living box; see checkpoint.h.
 *
 * The namespaces and mounts are those of a launch, made in another order: control groups, the root and the files its
 * memory is mapped from are made first, then criu makes the namespaces and stops for the network to be put in, then it
 * fills in the processes. */
#include "jail/checkpoint/criu_log.h"
#include "jail/cgroup.h"
#include "jail/jail_child.h"
#include "jail/fs/disk.h"
#include "jail/jail_internal.h"
#include "jail/volume_mount.h"
#include "jail/fs/volume_backing.h"
#include "jail/net/jail_net.h"
#include "jail/fs/overlay.h"
#include "jail/checkpoint/ext_files.h"
#include "jail/checkpoint/compress.h"
#include "jail/checkpoint/ext_conns.h"
#include "jail/view_server.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Checksums of memory are computed while the namespaces are created and criu reads it; no process runs before the
 * result is known. */
struct check {
  bool begun;
  pthread_t thread;
  int checkpoint, result;
  const struct manifest *manifest;
  struct err err;
};

struct restore {
  const struct jail_spec *spec;
  const char *path; /* of the checkpoint */
  struct check check;
  int checkpoint, userns, root, runtime, boot_id;
  int volumes[JAIL_VOLUMES_MAX]; /* of the manifest, in its order */
  size_t volumes_n;
  bool restored[JAIL_VOLUMES_MAX]; /* of the spec: among them */
  struct limit_view files;
  struct criu_view view;
  struct cgroup_join join;
  struct manifest manifest;
  struct criu_job job;
};

static void *check_work(void *arg)
{
  struct check *c = arg;
  c->result = decompress_all(c->checkpoint, c->manifest, &c->err);
  if (!c->result)
    c->result = manifest_check(c->checkpoint, c->manifest, true, &c->err);
  return NULL;
}

static int check_begin(struct restore *s, struct err *err)
{
  struct check *c = &s->check;
  int r = manifest_read(s->checkpoint, &s->manifest, err);
  if (r || s->job.criu->transient)
    return r;
  c->checkpoint = s->checkpoint;
  c->manifest = &s->manifest;
  c->begun = !pthread_create(&c->thread, NULL, check_work, c);
  if (!c->begun)
    check_work(c);
  return manifest_check(s->checkpoint, &s->manifest, false, err);
}

static int check_end(struct restore *s, struct err *err)
{
  if (s->check.begun)
    pthread_join(s->check.thread, NULL);
  s->check.begun = false;
  if (s->check.result)
    *err = s->check.err;
  return s->check.result;
}

static void restore_free(struct restore *s)
{
  struct err unused;
  check_end(s, &unused);
  const int fds[] = {s->checkpoint, s->userns, s->root, s->runtime, s->boot_id};
  for (size_t i = 0; i < ARRAY_LEN(fds); i++)
    if (fds[i] >= 0)
      close(fds[i]);
  for (size_t i = 0; i < s->job.handles.n; i++)
    close(s->job.handles.p[i].fd);
  for (size_t i = 0; i < s->volumes_n; i++)
    close(s->volumes[i]);
  limit_view_close(&s->files);
  vec_free(&s->job.handles);
  vec_free(&s->job.external);
  criu_view_close(&s->view);
  cgroup_join_close(&s->join);
  manifest_free(&s->manifest);
}

/* A daemon that died in the middle leaves processes in these groups; none of them ever was the box. */
static int make_groups(struct restore *s, struct err *err)
{
  const struct jail_spec *spec = s->spec;
  jail_kill(spec->instance, spec->id, NULL, NULL);
  int r = jail_remove(spec->instance, spec->id, NULL, err);
  return r ? r : cgroup_host()->make(spec->instance, spec->id, &spec->limits, &s->join, err);
}

/* What memory was mapped from outside the root: some fifty files, opened while disk and root are mounted. */
struct opening {
  struct restore *of;
  struct overlay_layers overlay_layers;
  bool begun;
  pthread_t thread;
  int result;
  struct err err;
};

static void *opening_work(void *arg)
{
  struct opening *o = arg;
  struct restore *s = o->of;
  o->result = ext_files_open(&s->manifest, &o->overlay_layers, s->job.criu->heaps ? s->job.criu->heaps : s->path,
                             &s->job, &o->err);
  return NULL;
}

static void opening_begin(struct opening *o)
{
  o->begun = overlay_views_allowed() && !pthread_create(&o->thread, NULL, opening_work, o);
}

static int opening_end(struct opening *o, int r, struct err *err)
{
  if (o->begun)
    pthread_join(o->thread, NULL);
  else if (!r)
    opening_work(o);
  if (!r && o->result)
    *err = o->err;
  return r ? r : o->result;
}

static int mount_root(struct restore *s, struct overlay_layers l, struct err *err)
{
  cleanup_fd int home = disk_open(s->spec->dir, &s->spec->limits, err);
  if (home < 0)
    return home;
  l.home = home;
  s->root = overlay_mount(&l, err);
  return MIN(s->root, 0);
}

static int make_root(struct restore *s, struct err *err)
{
  const struct jail_spec *spec = s->spec;
  s->userns = jail_map_ns(spec->id_base, err);
  if (s->userns < 0)
    return s->userns;
  struct overlay_layers l = {.dir = spec->dir,
                             .lowers = spec->lowers,
                             .home = -1,
                             .userns = s->userns,
                             .root = spec->id_base,
                             .shifted = spec->shifted};
  struct opening opening = {.of = s, .overlay_layers = l};
  opening_begin(&opening);
  int r = mount_root(s, l, err);
  if (!r && spec->runtime)
    r = MIN(s->runtime = jail_runtime(spec, err), 0);
  if (!r)
    r = MIN(s->boot_id = boot_id_keep(spec->dir, err), 0);
  r = r ? r : limit_view_make(spec->instance, spec->id, &s->files, err);
  return opening_end(&opening, r, err);
}

/* A checkpoint of a host with other hierarchies: the first that is here. */
static const char *group_dir(struct restore *s, struct str name)
{
  const struct jail_spec *spec = s->spec;
  char dir[PATH_MAX];
  int r = -ENOENT;
  for (size_t i = 0; i < CGROUP_SHOWN_MAX && r; i++)
    if (str_is(name, cgroup_shown[i]))
      r = cgroup_host()->shown(spec->instance, spec->id, i, dir, sizeof(dir));
  r = r ? cgroup_host()->shown(spec->instance, spec->id, 0, dir, sizeof(dir)) : r;
  return r ? "/run/own" : arena_fmt(&s->manifest.arena, "%s", dir);
}

/* Where criu finds the volume of a mount. */
static int open_volume(struct restore *s, struct str id, const char *point, const char **from, struct err *err)
{
  const struct jail_spec *spec = s->spec;
  size_t i = 0;
  while (i < spec->volumes_n && (s->restored[i] || !str_is(id, spec->volumes[i].id))) /* it may have one twice */
    i++;
  if (i == spec->volumes_n || s->volumes_n == JAIL_VOLUMES_MAX)
    return err_set(err, -ENOENT, "volume " STR_FMT ", which the box had at %s, does not exist any more", STR_ARG(id),
                   point);
  int tree = volume_backing_mount(spec->volume_place, spec->volumes[i].id, spec->id_base, err);
  if (tree < 0)
    return tree;
  s->restored[i] = true;
  *from = arena_fmt(&s->manifest.arena, "/run/volumes/%zu", s->volumes_n);
  s->volumes[s->volumes_n++] = tree;
  return 0;
}

/* Those that the box did not have when it was dumped. */
static int add_volumes(struct restore *s, int pidfd, struct err *err)
{
  struct jail_spec one = *s->spec;
  int r = 0;
  one.volumes_n = 1;
  for (size_t i = 0; i < s->spec->volumes_n && !r; i++) {
    one.volumes = &s->spec->volumes[i];
    r = s->restored[i] ? 0 : volume_mounts_attach(&one, pidfd, err);
  }
  return r;
}

static int name_mounts(struct restore *s, struct err *err)
{
  int r = 0;
  for (size_t i = 0; i < s->manifest.mounts.n && !r; i++) {
    const struct manifest_mount *m = &s->manifest.mounts.p[i];
    struct str source = str_of(m->source), prefix = STR(CRIU_GROUPS), volume = STR(CRIU_VOLUME);
    const char *from = str_starts(source, prefix) ? group_dir(s, str_skip(source, prefix.n)) : m->source;
    if (str_starts(source, volume))
      r = open_volume(s, str_skip(source, volume.n), m->point, &from, err);
    vec_push(&s->job.external, arena_fmt(&s->manifest.arena, "mnt[%s]:%s", m->point, from));
  }
  return r;
}

/* In namespaces of the box, which criu has made anew. Only a member can set what holds there. */
static int set_inside(pid_t init, int netns, const char *(*set)(void), struct err *err)
{
  int status = 0;
  cleanup_fd int userns = jail_open_ns(init, "user", err);
  if (userns < 0)
    return userns;
  pid_t pid = vfork(); /* our page tables are not worth a copy */
  if (pid == 0)
    _exit(setns(userns, CLONE_NEWUSER) || (netns >= 0 && setns(netns, CLONE_NEWNET)) ? 2 : set() ? 1 : 0);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
    return err_set(err, -EPERM, "the limits of a restored box's namespaces can't be set");
  return 0;
}

/* A new user namespace allows anything, and criu does not know what the old one did. */
static int limit_watching(pid_t init, struct err *err)
{
  return set_inside(init, -1, child_limit_watching, err);
}

/* The network comes before the processes: a listening socket on the box's address needs the address. */
static int make_network(pid_t init, void *arg, struct err *err)
{
  struct restore *s = arg;
  cleanup_fd int netns = jail_open_ns(init, "net", err);
  int r = netns < 0 ? netns : jail_net_loopback(netns, err);
  r = r ? r : set_inside(init, netns, child_allow_ping, err); /* such a socket may be among those that are restored */
  if (!r && s->spec->net)
    r = jail_net_attach(s->spec->net, netns, err);
  return r ? r : ext_conns_keep_addresses(netns, &s->manifest, s->spec->net ? jail_net_address(s->spec->net) : 0, err);
}

static int is_sound(pid_t init, void *arg, struct err *err)
{
  return check_end(arg, err);
}

static ino_t pid_namespace(pid_t pid)
{
  char path[PROC_PATH];
  struct stat st;
  snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
  return stat(path, &st) ? 0 : st.st_ino;
}

/* criu came into the box's groups with the processes it makes, and must not stop with them: back to the top. */
static int let_criu_out(const char *dir, pid_t init)
{
  char path[PATH_MAX + 32], text[16];
  ino_t inside = pid_namespace(init);
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
  int r = inside ? file_read(path, &b) : -ESRCH;
  struct str rest = buf_str(&b), line;
  snprintf(path, sizeof(path), "%s/../..", dir);
  while (!r && rest.n) {
    uint64_t pid = 0;
    str_cut(rest, '\n', &line, &rest);
    if (str_u64(line, &pid) || !pid || pid_namespace((pid_t)pid) == inside)
      continue;
    snprintf(text, sizeof(text), "%d", (int)pid);
    r = cgroup_put(path, "cgroup.procs", text);
    r = r == -ESRCH ? 0 : r;
  }
  return r;
}

/* The processes are in criu's hands still. They stop for good when it lets them go; no kernel promises that they count
 * as frozen before, so that is waited for afterwards. */
static int begin_freeze(pid_t init, void *arg, struct err *err)
{
  const struct jail_spec *spec = ((struct restore *)arg)->spec;
  char dir[PATH_MAX], path[PATH_MAX + 16];
  if (cgroup_host()->freezer(spec->instance, spec->id, dir, sizeof(dir)))
    return err_set(err, -EOPNOTSUPP, "this host has no freezer, without which no box can be frozen");
  snprintf(path, sizeof(path), "%s/cgroup.freeze", dir);
  bool v2 = access(path, F_OK) == 0;
  int r = let_criu_out(dir, init);
  r = r ? r : cgroup_put(dir, v2 ? "cgroup.freeze" : "freezer.state", v2 ? "1" : "FROZEN");
  return r ? err_set(err, r, "freezing of box %s: %s", spec->id, strerrordesc_np(-r)) : 0;
}

/* What is frozen does not die either, and would be waited for without end. */
static void end_freeze(void *arg)
{
  const struct jail_spec *spec = ((struct restore *)arg)->spec;
  jail_freeze(spec->instance, spec->id, false, NULL);
}

static int fill(struct restore *s, struct jail *out, struct err *err)
{
  const struct jail_spec *spec = s->spec;
  pid_t pid = 0;
  cleanup_fd int work = openat(s->view.own, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  s->job.work = work;
  s->job.view = &s->view;
  s->job.owner = spec->owner ? spec->owner : spec->id_base;
  s->job.restore = true;
  s->job.root = s->root;
  s->job.runtime = s->runtime;
  s->job.boot_id = s->boot_id;
  s->job.files = s->files.tree;
  s->job.volumes = s->volumes;
  s->job.volumes_n = s->volumes_n;
  s->job.join = &s->join;
  s->job.ready = make_network;
  s->job.filled = is_sound;
  s->job.leave = s->job.criu->held ? begin_freeze : NULL;
  s->job.failed = s->job.criu->held ? end_freeze : NULL;
  s->job.arg = s;
  int r = criu_run(&s->job, &pid, err);
  if (r && check_end(s, err))
    return s->check.result;
  if (r)
    return r == -EREMOTEIO ? criu_log_explain(work, NULL, -EIO, "the box can't be restored", err) : r;
  out->init.pid = pid;
  out->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  out->netns = out->pidfd < 0 ? -1 : jail_open_ns(pid, "net", NULL);
  if (out->netns < 0 || proc_start_time(pid, &out->init.start) || child_set_priority(pid, true))
    return err_set(err, -ESRCH, "box %s exited as soon as it was restored", spec->id);
  view_watch(spec->instance, spec->id, pid, &s->files);
  r = limit_watching(pid, err);
  r = r ? r : add_volumes(s, out->pidfd, err);
  r = r ? r : ext_conns_abort(out->netns, &s->manifest, err);
  return r || !s->job.criu->held ? r : jail_freeze(spec->instance, spec->id, true, err);
}

static int build(struct restore *s, struct jail *out, struct err *err)
{
  int64_t began = clock_mono_us(), checked, created;
  s->checkpoint = open(s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (s->checkpoint < 0)
    return err_errno(err, "opening the checkpoint %s", s->path);
  int r = check_begin(s, err);
  if (r)
    return r;
  checked = clock_mono_us();
  r = name_mounts(s, err);
  r = r ? r : make_groups(s, err);
  if (!r)
    r = make_root(s, err);
  if (!r)
    r = criu_view_open(s->checkpoint, &s->manifest, s->userns, s->spec->id_base, JAIL_IDS, s->spec->hostname, &s->view,
                       err);
  if (!r && compressed_any(&s->manifest)) /* criu can't wait for it */
    r = check_end(s, err);
  created = clock_mono_us();
  if (!r)
    r = fill(s, out, err);
  log_debug("box %s restored: checked in %" PRId64 " us, jail created in %" PRId64 " us, criu in %" PRId64 " us",
            s->spec->id, checked - began, created - checked, clock_mono_us() - created);
  return r;
}

int jail_restore(const struct jail_criu *criu, const struct jail_spec *spec, const char *checkpoint, struct jail *out,
                 struct err *err)
{
  __attribute__((cleanup(restore_free))) struct restore s = {
      .spec = spec,
      .path = checkpoint,
      .checkpoint = -1,
      .userns = -1,
      .root = -1,
      .runtime = -1,
      .boot_id = -1,
      .files = LIMIT_VIEW_NONE,
      .view = CRIU_VIEW_NONE,
      .join = CGROUP_JOIN_NONE,
      .manifest = MANIFEST_INIT,
      .job = {.criu = criu},
  };
  *out = JAIL_NONE;
  int r = cgroup_host() ? jail_check_spec(spec, err) : err_set(err, -EOPNOTSUPP, "this host offers no control groups");
  if (r)
    return r;
  r = build(&s, out, err);
  if (r) {
    struct err unused;
    check_end(&s, &unused);
    compressed_restore(s.checkpoint, &s.manifest);
    jail_kill(spec->instance, spec->id, out, NULL);
    jail_close(out);
    jail_remove(spec->instance, spec->id, NULL, NULL);
  }
  return r;
}
