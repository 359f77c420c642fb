/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_dump.c - a living box becomes a checkpoint; see checkpoint.h.
 *
 * criu's word alone is not enough: with a program on a mount it can't see it has reported success, written no memory
 * and the box would be gone. So every process that was alive is looked for in the checkpoint before it counts. */
#include "jail/checkpoint/criu_log.h"
#include "jail/cgroup.h"
#include "jail/jail_child.h"
#include "jail/checkpoint/criu_journal.h"
#include "jail/fs/disk.h"
#include "jail/fs/volume_backing.h"
#include "jail/jail_internal.h"
#include "jail/volume_mount.h"
#include "jail/checkpoint/link_remap.h"
#include "jail/checkpoint/ext_files.h"
#include "jail/checkpoint/rescue.h"
#include "jail/checkpoint/volume_files.h"
#include "jail/checkpoint/ext_conns.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>

#define SMALL_DISK  20 /* the reserve is at most this part of a disk */
#define COMER_TRIES 50

struct dump {
  const struct jail_spec *spec;
  const struct jail *jail;
  const char *checkpoint;
  int dir;          /* of the checkpoint */
  bool boot_id;     /* it has one of its own */
  uint64_t private; /* bytes of memory that are written for each process */
  int64_t until_us; /* how long the box may be looked at */
  char freezer[PATH_MAX];
  frozen_processes processes;
  struct box_mounts mounts;
  VEC(uint64_t) volume_mounts; /* those of them that are volumes */
  struct manifest manifest;
  struct criu_job job;
  struct criu_child child;
};

static void dump_free(struct dump *d)
{
  criu_abandon(&d->child);
  if (d->dir >= 0)
    close(d->dir);
  if (d->job.journal > 0)
    close(d->job.journal);
  vec_free(&d->processes);
  vec_free(&d->mounts.ids);
  vec_free(&d->volume_mounts);
  vec_free(&d->job.external);
  manifest_free(&d->manifest);
}

/* How many processes a box has, and how much they map, is the box's choice: looking at it has an end. */
static int still_going(const void *arg, struct err *err)
{
  const struct dump *d = arg;
  const struct jail_criu *criu = d->job.criu;
  if (criu->stop && atomic_load(criu->stop))
    return err_set(err, -ECANCELED, "the box is being killed");
  if (clock_mono_us() <= d->until_us)
    return 0;
  return err_set(err, -ETIMEDOUT,
                 "the box can't be checkpointed: its processes and what they map are too many to be looked at within "
                 "%u s (checkpoint_seconds); end some",
                 criu->seconds ? criu->seconds : JAIL_CRIU_SECONDS);
}

/* --- who is in there ------------------------------------------------------------------------------------------ */

/* The last number of a line "NSpid:\t4711\t12": the pid in the innermost namespace. */
static pid_t inner_pid(struct str line)
{
  uint64_t pid = 0;
  ptrdiff_t tab = str_rfind(line, '\t');
  return tab < 0 || str_u64(str_skip(line, (size_t)tab + 1), &pid) || pid > INT_MAX ? 0 : (pid_t)pid;
}

/* What criu would try for its whole time, or report as something else. Pid and user namespaces below the box's can't be
 * held; others it knows. */
static int refuse(const struct dump *d, const struct frozen_process *p, pid_t tracer, struct err *err)
{
  static const char *const kinds[] = {"user", "pid"};
  const char *why = tracer ? "is traced by a debugger" : NULL;
  for (size_t i = 0; i < ARRAY_LEN(kinds) && !p->dead && !why; i++) {
    char path[PROC_PATH], own[PROC_PATH] = "", of[PROC_PATH] = "";
    snprintf(path, sizeof(path), "/proc/%d/ns/%s", d->jail->init.pid, kinds[i]);
    if (readlink(path, of, sizeof(of) - 1) < 0)
      return err_set(err, -ESRCH, "box %s does not exist any more", d->spec->id);
    snprintf(path, sizeof(path), "/proc/%d/ns/%s", p->pid, kinds[i]);
    if (readlink(path, own, sizeof(own) - 1) > 0 && strcmp(own, of))
      why = "has namespaces of its own";
  }
  return why ? err_set(err, -ENOTSUP, "the box can't be checkpointed: process %d (%s) %s", p->inside, p->name, why) : 0;
}

/* "RssAnon:\t    1234 kB" */
static uint64_t kilobytes(struct str line)
{
  uint64_t n = 0;
  struct str number, unit;
  ptrdiff_t colon = str_find(line, ':');
  str_cut(str_trim(str_skip(line, (size_t)colon + 1)), ' ', &number, &unit);
  return colon < 0 || str_u64(number, &n) ? 0 : n << 10;
}

/* A process that was stopped (SIGSTOP, ^Z) before its control group of version 1 froze can't be traced until it thaws:
 * criu would wait for its whole time. Continued and stopped again while it is frozen it has run no instruction and its
 * stop is a pending signal, which criu knows: here and in the checkpoint the process is stopped, as it was. */
static void restop(const struct dump *d, pid_t pid, bool shown)
{
  char path[PATH_MAX + 16], sleeps[64] = "";
  snprintf(path, sizeof(path), "%s/freezer.state", d->freezer);
  if (access(path, F_OK))
    return;
  snprintf(path, sizeof(path), "/proc/%d/wchan", pid);
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, sleeps, sizeof(sleeps) - 1) < 0 || (!shown && strcmp(sleeps, "do_signal_stop") != 0))
    return;
  cleanup_fd int pidfd = cgroup_pidfd(d->freezer, pid); /* the number may be another's: a frozen box can be killed */
  if (pidfd < 0)
    return;
  syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0);
  syscall(SYS_pidfd_send_signal, pidfd, SIGSTOP, NULL, 0);
}

static int see_process(struct dump *d, pid_t pid, struct err *err)
{
  char path[PROC_PATH];
  uint64_t tracer = 0;
  char letter = 0;
  struct frozen_process p = {.pid = pid};
  cleanup_buf struct buf b = BUF_INIT(65536);
  snprintf(path, sizeof(path), "/proc/%d/status", pid);
  if (file_read(path, &b))
    return err_set(err, -EAGAIN, "process %d of box %s exited while it was inspected", pid, d->spec->id);
  struct str rest = buf_str(&b), line;
  while (rest.n > 0) {
    str_cut(rest, '\n', &line, &rest);
    if (str_starts(line, STR("NSpid:")))
      p.inside = inner_pid(line);
    else if (str_starts(line, STR("Name:\t")))
      str_copyz(str_sub(str_skip(line, 6), 0, sizeof(p.name) - 1), p.name, sizeof(p.name));
    else if (str_starts(line, STR("State:\t")) && line.n > strlen("State:\t"))
      letter = line.p[strlen("State:\t")];
    else if (str_starts(line, STR("RssAnon:")) || str_starts(line, STR("VmSwap:")))
      d->private += kilobytes(line);
    else if (str_starts(line, STR("TracerPid:\t")))
      str_u64(str_skip(line, strlen("TracerPid:\t")), &tracer);
  }
  p.dead = letter == 'Z' || letter == 'X';
  if (!tracer && (letter == 'T' || letter == 'D')) /* frozen ones show either, by the kernel's version */
    restop(d, pid, letter == 'T');
  vec_push(&d->processes, p);
  return refuse(d, &p, (pid_t)tracer, err);
}

static int each_process(struct dump *d, int (*see)(struct dump *d, pid_t pid, struct err *err), struct err *err)
{
  char path[PATH_MAX + 16];
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  snprintf(path, sizeof(path), "%s/cgroup.procs", d->freezer);
  int r = file_read(path, &b);
  if (r)
    return err_set(err, r, "reading %s: %s", path, strerrordesc_np(-r));
  struct str rest = buf_str(&b), line;
  while (rest.n > 0 && !r) {
    uint64_t pid;
    str_cut(rest, '\n', &line, &rest);
    r = still_going(d, err);
    if (!r && !str_u64(line, &pid) && pid > 1 && pid <= INT_MAX)
      r = see(d, (pid_t)pid, err);
  }
  return r;
}

static const char *heaps_of(const struct dump *d)
{
  return d->job.criu->heaps ? d->job.criu->heaps : d->checkpoint;
}

static int prepare_process(struct dump *d, pid_t pid, struct err *err)
{
  ext_files_prepare(pid, heaps_of(d));
  return 0;
}

/* A fork of a zygote that is about to enter is in the box's groups for a moment before it has a pid in there
 * (enter_box.c).
 */
static int see_comer(struct dump *d, pid_t pid, struct err *err)
{
  char path[PROC_PATH], own[PROC_PATH] = "", of[PROC_PATH] = "";
  snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
  if (readlink("/proc/self/ns/pid", own, sizeof(own) - 1) < 0 || readlink(path, of, sizeof(of) - 1) < 0)
    return 0;
  return strcmp(own, of) ? 0 : err_set(err, -EAGAIN, "process %d is entering box %s", pid, d->spec->id);
}

/* One that does not come in is told by see_process. */
static int freeze_whole(struct dump *d, struct err *err)
{
  for (int i = 0;; i++) {
    struct err comer = ERR_NONE;
    int r = jail_freeze(d->spec->instance, d->spec->id, true, err);
    if (r || each_process(d, see_comer, &comer) != -EAGAIN || i == COMER_TRIES)
      return r;
    jail_freeze(d->spec->instance, d->spec->id, false, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
}

/* --- what is mapped and mounted ------------------------------------------------------------------------------- */

static int external(struct dump *d, const char *text)
{
  vec_push(&d->job.external, text);
  return 0;
}

/* Source and root of a mount are the host's words: no box can mount. Where it is mounted is the box's, as far as
 * directories can be renamed. By the root it is known where the kernel allows only a plain clone (program.c). */
static bool is_runtime(struct str root, struct str source)
{
  struct str end = STR(JAIL_RUNTIME);
  return str_is(source, JAIL_RUNTIME_SOURCE) ||
         (root.n > end.n && str_is(str_skip(root, root.n - end.n), JAIL_RUNTIME));
}

/* The box's own control groups, of either generation. Nobody in a box can rename what is in /sys. */
static const char *group_source(struct arena *a, struct str point)
{
  struct str top = STR("/sys/fs/cgroup/");
  return arena_fmt(a, CRIU_GROUPS STR_FMT, STR_ARG(str_skip(point, top.n)));
}

/* Where a restore finds what is mounted there, or NULL: criu knows that mount by itself. */
static const char *mount_source(struct dump *d, struct str device, struct str root, struct str point, struct str type,
                                struct str source)
{
  struct arena *a = &d->manifest.arena;
  const struct jail_volume *volume = volume_mount_of(d->spec, device, root);
  if (volume)
    return arena_fmt(a, CRIU_VOLUME "%s", volume->id);
  if (is_runtime(root, source))
    return CRIU_RUNTIME;
  if (str_is(type, "devtmpfs"))
    return arena_fmt(a, "/dev" STR_FMT, STR_ARG(root));
  if (str_is(type, "cgroup") || str_is(type, "cgroup2"))
    return group_source(a, point);
  if (!str_is(type, "tmpfs"))
    return NULL;
  if (str_is(source, LIMIT_VIEW_SOURCE))
    return arena_fmt(a, CRIU_LIMIT_VIEW STR_FMT, STR_ARG(root));
  if (!str_is(source, BOOT_ID_SOURCE))
    return NULL;
  d->boot_id = true;
  return CRIU_BOOT_ID;
}

/* The kernel writes blanks, tabs, line ends and backslashes as three octal digits, which criu undoes. */
static const char *plain_path(struct arena *a, struct str s)
{
  char *out = arena_alloc(a, s.n + 1);
  size_t n = 0;
  for (size_t i = 0; i < s.n; i++) {
    unsigned v = 0;
    size_t k = 1;
    for (; s.p[i] == '\\' && k < 4 && i + k < s.n && s.p[i + k] >= '0' && s.p[i + k] <= '7'; k++)
      v = v * 8 + (unsigned)(s.p[i + k] - '0');
    out[n++] = k == 4 ? (char)v : s.p[i];
    i += k == 4 ? 3 : 0;
  }
  out[n] = 0;
  return out;
}

/* ID parent device ROOT POINT options... - TYPE source super. What comes from the host's /dev is put there again, and
 * so are the runtime, the boot id, the box's limits and its control groups. */
static bool see_mount(struct dump *d, struct str line)
{
  struct str field[5], type, source, rest = line;
  uint64_t id;
  for (size_t i = 0; i < ARRAY_LEN(field); i++)
    str_cut(rest, ' ', &field[i], &rest);
  ptrdiff_t dash = str_search(rest, STR(" - "));
  if (dash < 0 || str_u64(field[0], &id))
    return true;
  vec_push(&d->mounts.ids, id);
  str_cut(str_skip(rest, (size_t)dash + 3), ' ', &type, &rest);
  str_cut(rest, ' ', &source, &rest);
  const char *found = mount_source(d, field[2], field[3], field[4], type, source);
  if (!found)
    return true;
  if (str_starts(str_of(found), STR(CRIU_VOLUME)))
    vec_push(&d->volume_mounts, id);
  struct arena *a = &d->manifest.arena;
  struct manifest_mount m = {plain_path(a, field[4]), found};
  vec_push(&d->manifest.mounts, m);
  external(d, arena_fmt(a, "mnt[%s]:%s", m.point, m.point));
  return !strpbrk(m.point, "[]:\n"); /* a box can rename a directory above a mount, and criu splits its option there */
}

static int see_mounts(struct dump *d, struct err *err)
{
  char path[PROC_PATH];
  cleanup_buf struct buf b = BUF_INIT(4 << 20);
  snprintf(path, sizeof(path), "/proc/%d/mountinfo", d->jail->init.pid);
  int r = file_read(path, &b);
  struct str rest = buf_str(&b), line;
  while (rest.n > 0) {
    str_cut(rest, '\n', &line, &rest);
    if (!see_mount(d, line))
      return err_set(err, -ENOTSUP,
                     "the box can't be checkpointed: a mount point has one of []: or a line end in its path");
  }
  return r ? err_set(err, r, "reading %s: %s", path, strerrordesc_np(-r)) : 0;
}

static int see_files(struct dump *d, struct err *err)
{
  int r = 0;
  d->mounts.going = still_going;
  d->mounts.arg = d;
  for (size_t i = 0; i < d->processes.n && !r; i++)
    r = ext_files_collect(d->processes.p[i].pid, &d->mounts, heaps_of(d), &d->manifest, err);
  for (size_t i = 0; i < d->manifest.files.n; i++)
    external(d, d->manifest.files.p[i].key);
  return r;
}

/* --- how large it may be -------------------------------------------------------------------------------------- */

/* Deleted files that are open are copied into the checkpoint: as much as the box has on its disk, at most. */
static uint64_t disk_used(const struct dump *d)
{
  char root[PROC_PATH];
  struct statvfs fs;
  uint64_t limit = d->spec->limits.disk;
  snprintf(root, sizeof(root), "/proc/%d/root", d->jail->init.pid);
  if (!limit || statvfs(root, &fs))
    return JAIL_CHECKPOINT_EXTRA; /* its files are on the host's own disk */
  return MIN((uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize, limit);
}

static uint64_t most_bytes(const struct dump *d)
{
  return jail_checkpoint_most(d->spec->limits.memory, disk_used(d));
}

static int check_room(const struct dump *d, uint64_t more, struct err *err)
{
  struct statvfs fs;
  if (fstatvfs(d->dir, &fs))
    return err_errno(err, "reading the free space of %s", d->checkpoint);
  uint64_t reserve = MIN(d->job.criu->reserve, (uint64_t)fs.f_blocks * fs.f_frsize / SMALL_DISK);
  uint64_t free = (uint64_t)fs.f_bavail * fs.f_frsize;
  if (free >= reserve && free - reserve >= more)
    return 0;
  return err_set(err, -ENOSPC,
                 "the disk of the checkpoints is full: %" PRIu64 " MiB are free, and %" PRIu64
                 " are kept in reserve (disk_reserve_mb)",
                 free >> 20, reserve >> 20);
}

static int check_size(const struct dump *d, uint64_t bytes, struct err *err)
{
  uint64_t most = most_bytes(d);
  if (bytes <= most)
    return 0;
  return err_set(err, -EFBIG,
                 "the box can't be checkpointed: its checkpoint would have more than %" PRIu64
                 " MiB (twice its memory, what it has on its disk and %" PRIu64
                 " MiB); memory that processes share counts for each of them: end some",
                 most >> 20, (uint64_t)JAIL_CHECKPOINT_EXTRA >> 20);
}

/* criu writes as fast as the disk takes it: what is looked at while it writes may be a moment old. */
static int is_bounded(void *arg, struct err *err)
{
  const struct dump *d = arg;
  int r = check_size(d, jail_checkpoint_bytes(d->checkpoint), err);
  return r ? r : check_room(d, 0, err);
}

/* --- proof ---------------------------------------------------------------------------------------------------- */

static int check_process(const struct dump *d, const struct frozen_process *p, struct err *err)
{
  static const char *const kinds[] = {"core", "mm", "pagemap"};
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
    char name[40];
    struct stat st;
    snprintf(name, sizeof(name), "%s-%d.img", kinds[i], p->inside);
    if (fstatat(d->dir, name, &st, AT_SYMLINK_NOFOLLOW) || st.st_size == 0)
      return err_set(err, -ENOTSUP, "process %d (%s) has no %s in the checkpoint: was it started from outside the box?",
                     p->inside, p->name, name);
  }
  return 0;
}

static int check_all(const struct dump *d, struct err *err)
{
  int r = criu_log_doubtful(d->dir, err) ? -ENOTSUP : 0;
  for (size_t i = 0; i < d->processes.n && !r; i++)
    if (!d->processes.p[i].dead)
      r = check_process(d, &d->processes.p[i], err);
  return r;
}

/* -------------------------------------------------------------------------------------------------------------- */

/* The box's files, while the checkpoint is written out. Not before criu is done: it may give deleted files a name
 * again. */
struct files {
  const char *dir;
  const struct jail_spec *spec;
  bool begun;
  pthread_t thread;
  int result;
  struct err err;
};

/* What it wrote to volumes is on stable storage with its memory, as far as they are images: a directory may be a part
 * of a filesystem of any size. */
static int settle_volumes(const struct jail_spec *spec, struct err *err)
{
  int r = 0;
  for (size_t i = 0; i < spec->volumes_n && !r && !spec->volume_place->directory; i++) {
    cleanup_fd int root = volume_backing_open(spec->volume_place, spec->volumes[i].id, err);
    r = root < 0 ? root : syncfs(root) ? err_errno(err, "writing out volume %s", spec->volumes[i].id) : 0;
  }
  return r;
}

static void *files_write(void *arg)
{
  struct files *f = arg;
  f->result = disk_settle(f->dir, &f->err);
  f->result = f->result ? f->result : boot_id_settle(f->dir, &f->err);
  f->result = f->result ? f->result : settle_volumes(f->spec, &f->err);
  return NULL;
}

static int settle(struct dump *d, struct err *err)
{
  const struct jail_criu *criu = d->job.criu;
  struct files f = {.dir = d->spec->dir, .spec = d->spec};
  int r = d->boot_id && !criu->transient ? boot_id_save(f.dir, d->jail->init.pid, err) : 0;
  if (r)
    return r;
  if (criu->with_disk && !(f.begun = !pthread_create(&f.thread, NULL, files_write, &f)))
    files_write(&f);
  r = manifest_seal(d->dir, &d->manifest, criu->transient, err);
  if (f.begun)
    pthread_join(f.thread, NULL);
  if (!r && f.result)
    *err = f.err;
  return r ? r : f.result;
}

/* criu loads itself while the box is looked at. */
static int begin(struct dump *d, struct err *err)
{
  d->job.checkpoint = d->job.work = d->dir;
  d->job.pid = d->jail->init.pid;
  d->job.freezer = d->freezer;
  d->job.owner = jail_owner(d->jail);
  d->job.journal = rescue_open(d->dir, err);
  return d->job.journal < 0 ? d->job.journal : criu_begin(&d->job, &d->child, err);
}

static int take(struct dump *d, struct err *err)
{
  pid_t unused;
  int64_t began = clock_mono_us(), asked, written;
  int r = each_process(d, see_process, err);
  if (!r)
    r = check_size(d, d->private, err);
  if (!r)
    r = check_room(d, d->private, err);
  if (!r)
    r = see_mounts(d, err);
  if (!r)
    r = see_files(d, err);
  if (!r)
    r = ext_conns_collect(d->jail->netns, &d->manifest, err);
  if (r)
    return r;
  asked = clock_mono_us();
  d->job.going = is_bounded;
  d->job.arg = d;
  r = criu_finish(&d->job, &d->child, &unused, err);
  if (r == -EFBIG || r == -ENOSPC)
    return r;
  if (r)
    return criu_log_explain(d->dir, &d->processes, r, "the box can't be checkpointed", err);
  written = clock_mono_us();
  r = check_all(d, err);
  if (!r)
    r = check_size(d, jail_checkpoint_bytes(d->checkpoint), err);
  if (r)
    return r;
  if (volume_files_loosen(d->dir, d->volume_mounts.p, d->volume_mounts.n, err))
    log_warn("box %s: %s; it can't be resumed once a file it has open on a volume was changed", d->spec->id, err->msg);
  *err = ERR_NONE;
  unlinkat(d->dir, CRIU_LOG, 0);
  unlinkat(d->dir, CRIU_JOURNAL_NAME, 0);
  unlinkat(d->dir, "stats-dump", 0);
  r = settle(d, err);
  log_debug("box %s dumped: inspected in %" PRId64 " us, criu in %" PRId64 " us, synced in %" PRId64 " us", d->spec->id,
            asked - began, written - asked, clock_mono_us() - written);
  return r;
}

static int make_dir(const char *checkpoint, struct err *err)
{
  if (mkdir(checkpoint, 0700))
    return err_errno(err, "making %s", checkpoint);
  int fd = open(checkpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 ? err_errno(err, "opening %s", checkpoint) : fd;
}

/* The directory's own name must be as stable as what is in it. */
static int settle_name(const char *checkpoint, struct err *err)
{
  char parent[PATH_MAX];
  if (str_copyz(path_dir(str_of(checkpoint)), parent, sizeof(parent)))
    return err_set(err, -ENAMETOOLONG, "path too long: %s", checkpoint);
  cleanup_fd int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 || fsync(fd) ? err_errno(err, "writing out %s", parent) : 0;
}

/* The agent's priority is given from outside and no restored process could take it for itself. */
int jail_dump(const struct jail_criu *criu, const struct jail_spec *spec, const struct jail *j, const char *checkpoint,
              struct err *err)
{
  const struct cgroup_ops *ops = cgroup_host();
  __attribute__((cleanup(dump_free))) struct dump d = {.spec = spec,
                                                       .jail = j,
                                                       .checkpoint = checkpoint,
                                                       .dir = -1,
                                                       .manifest = MANIFEST_INIT,
                                                       .job = {.criu = criu},
                                                       .child = CRIU_CHILD_NONE};
  d.until_us = clock_mono_us() + (int64_t)(criu->seconds ? criu->seconds : JAIL_CRIU_SECONDS) * 1000000;
  if (!ops || ops->freezer(spec->instance, spec->id, d.freezer, sizeof(d.freezer)))
    return err_set(err, -EOPNOTSUPP, "this host has no freezer, without which no box can be checkpointed");
  d.dir = make_dir(checkpoint, err);
  if (d.dir < 0)
    return d.dir;
  int r = begin(&d, err);
  if (!r) /* the memory of a zygote is kept before anything of the box is, and may be large */
    r = check_room(&d, 0, err);
  if (!r)
    r = each_process(&d, prepare_process, err);
  if (!r)
    r = freeze_whole(&d, err);
  if (!r) {
    child_set_priority(j->init.pid, false);
    r = take(&d, err);
    child_set_priority(j->init.pid, true);
  }
  if (!r && !criu->transient)
    r = settle_name(checkpoint, err);
  if (r) {
    link_remaps_remove(d.dir, j->init.pid, true);
    jail_freeze(spec->instance, spec->id, false, NULL);
    if (d.job.died)
      jail_rescue(checkpoint, spec->instance, spec->id);
    jail_checkpoint_remove(checkpoint, NULL);
  }
  return r;
}

void jail_rescue(const char *checkpoint, const char *instance, const char *id)
{
  unsigned undone = 0;
  struct err err = ERR_NONE;
  cleanup_fd int dir = open(checkpoint, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir < 0)
    return;
  int failed = rescue(dir, instance, id, &undone, &err);
  pid_t inside = id && cgroup_host() ? cgroup_host()->any(instance, id) : 0;
  if (inside > 0)
    link_remaps_remove(dir, inside, true);
  if (failed)
    log_error("box %s: %s", id ? id : "", err.msg);
  else if (undone)
    log_warn("box %s: criu was killed during a dump; the state of %u threads was restored", id ? id : "", undone);
}

void jail_link_remaps_remove(const char *checkpoint, const struct jail *j, bool again)
{
  cleanup_fd int dir = open(checkpoint, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir >= 0 && j->init.pid > 0)
    link_remaps_remove(dir, j->init.pid, !again);
}
