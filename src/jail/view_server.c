/* SPDX-License-Identifier: Apache-2.0 */
/* view_server.c - see view_server.h. */
#include "jail/view_server.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>

#define FRESH_USEC     10000   /* numbers of one moment: readers take a file in several pieces */
#define READS_PER_SEC  200     /* of one box; more are not asked about */
#define WRITES_PER_SEC 1000    /* of all boxes: a tenth of a second of work; more reads see what is there */
#define SECOND_USEC    1000000 /* how often boxes that aren't asked about are written */
#define LOAD_USEC      5000000 /* between two looks at the load, as in the kernel */

struct watched {
  char instance[JAIL_NAME_MAX + 1], id[JAIL_NAME_MAX + 1];
  dev_t device;
  int live[VIEW_LIVE];
  int64_t offset_usec; /* of the box's uptime */
  struct view_numbers last;
  uint64_t last_cpu;       /* microseconds at the last look at the load */
  int64_t written, second; /* when it was written last; begin of the second that `reads` counts */
  unsigned reads;
  bool asked; /* the kernel asks before its reads */
};

static struct {
  pthread_mutex_t lock;
  VEC(struct watched *) boxes;
  int fan; /* -1: the kernel does not ask */
  int64_t load_at;
  int64_t second; /* that `writes` counts */
  unsigned writes;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER, .fan = -1};

static void ask(struct watched *w, bool on)
{
  unsigned flags = on ? FAN_MARK_ADD : FAN_MARK_REMOVE;
  int r = server.fan < 0 ? -1 : 0;
  for (size_t i = 0; i < VIEW_LIVE && !r; i++)
    r = fanotify_mark(server.fan, flags, FAN_ACCESS_PERM, w->live[i], NULL);
  w->asked = on && !r;
}

static void write_live(struct watched *w)
{
  static void (*const writers[VIEW_LIVE])(const struct view_numbers *v, struct buf *out) = {
      [VIEW_MEMINFO] = view_write_meminfo, [VIEW_STAT] = view_write_stat, [VIEW_LOADAVG] = view_write_loadavg};
  if (view_measure(w->instance, w->id, true, w->offset_usec, &w->last))
    return;
  for (size_t i = 0; i < VIEW_LIVE; i++) {
    cleanup_buf struct buf text = BUF_INIT((size_t)1 << 20);
    writers[i](&w->last, &text);
    if (!buf_failed(&text) && pwrite(w->live[i], text.p, text.n, 0) < 0)
      log_debug("writing %s of box %s: %s", view_names[i], w->id, strerrordesc_np(errno));
  }
  w->written = clock_mono_us();
}

/* --- the thread ----------------------------------------------------------------------------------------------- */

static struct watched *by_device(dev_t device)
{
  for (size_t i = 0; i < server.boxes.n; i++)
    if (server.boxes.p[i]->device == device)
      return server.boxes.p[i];
  return NULL;
}

static bool within_budget(int64_t now)
{
  if (now - server.second >= SECOND_USEC) {
    server.second = now;
    server.writes = 0;
  }
  return server.writes++ < WRITES_PER_SEC;
}

static void before_read(int file)
{
  struct stat st;
  struct watched *w = fstat(file, &st) ? NULL : by_device(st.st_dev);
  int64_t now = clock_mono_us();
  if (!w)
    return;
  if (now - w->second >= SECOND_USEC) {
    w->second = now;
    w->reads = 0;
  }
  if (w->asked && now - w->written >= FRESH_USEC && within_budget(now))
    write_live(w);
  if (w->asked && ++w->reads > READS_PER_SEC)
    ask(w, false);
}

static void take_questions(void)
{
  _Alignas(struct fanotify_event_metadata) char bytes[4096];
  ssize_t n = read(server.fan, bytes, sizeof(bytes));
  const struct fanotify_event_metadata *e = (const void *)bytes;
  for (; n > 0 && FAN_EVENT_OK(e, n); e = FAN_EVENT_NEXT(e, n)) {
    if (e->fd < 0)
      continue;
    struct fanotify_response answer = {.fd = e->fd, .response = FAN_ALLOW};
    before_read(e->fd);
    if (e->mask & FAN_ACCESS_PERM && write(server.fan, &answer, sizeof(answer)) < 0)
      log_debug("answering a read of a box: %s", strerrordesc_np(errno));
    close(e->fd);
  }
}

/* The kernel's own averages, from processor time instead of the number of processes that want some. */
static void count_load(struct watched *w, int64_t passed)
{
  static const uint64_t keep[] = {1884, 2014, 2037}; /* of VIEW_LOAD_ONE in five seconds: 1, 5 and 15 minutes */
  struct view_numbers now = w->last;
  if (view_measure(w->instance, w->id, false, w->offset_usec, &now))
    return;
  uint64_t is = now.usage.user_usec + now.usage.system_usec;
  uint64_t active = is > w->last_cpu ? (is - w->last_cpu) * VIEW_LOAD_ONE / (uint64_t)passed : 0;
  w->last_cpu = is;
  for (size_t i = 0; i < ARRAY_LEN(keep); i++)
    w->last.load[i] = (w->last.load[i] * keep[i] + active * (VIEW_LOAD_ONE - keep[i])) / VIEW_LOAD_ONE;
}

static void tick(int64_t now)
{
  int64_t passed = now - server.load_at;
  bool load = passed >= LOAD_USEC;
  for (size_t i = 0; i < server.boxes.n; i++) {
    struct watched *w = server.boxes.p[i];
    if (load)
      count_load(w, passed);
    if (w->asked || now - w->second < SECOND_USEC)
      continue;
    write_live(w);
    w->second = now;
    w->reads = 0;
    ask(w, true);
  }
  if (load)
    server.load_at = now;
}

static void *serve(void *arg UNUSED)
{
  int64_t ticked = 0;
  for (;;) {
    struct pollfd p = {.fd = server.fan, .events = POLLIN};
    int ready = poll(&p, 1, SECOND_USEC / 1000);
    int64_t now = clock_mono_us();
    pthread_mutex_lock(&server.lock);
    if (ready > 0)
      take_questions();
    if (now - ticked >= SECOND_USEC) {
      ticked = now;
      tick(now);
    }
    pthread_mutex_unlock(&server.lock);
  }
  return NULL;
}

/* Without the thread the files stay as they were made. */
static void begin(void)
{
  sigset_t all, before;
  pthread_t thread;
  server.load_at = clock_mono_us();
  server.fan = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE | FAN_UNLIMITED_MARKS,
                             O_RDONLY | O_CLOEXEC | O_LARGEFILE);
  if (server.fan < 0)
    log_warn("fanotify: %s; memory and load that boxes see are up to a second old", strerrordesc_np(errno));
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(&thread, NULL, serve, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (code) {
    log_error("creating the thread that writes what boxes see of their limits: %s", strerrordesc_np(code));
    close(steal_fd(&server.fan));
  } else {
    pthread_detach(thread);
  }
}

/* --- boxes ---------------------------------------------------------------------------------------------------- */

/* What criu or a launch has given the box: "boottime SECONDS NANOSECONDS". */
static int64_t uptime_offset(pid_t pid)
{
  char path[PROC_PATH];
  cleanup_buf struct buf b = BUF_INIT(512);
  snprintf(path, sizeof(path), "/proc/%d/timens_offsets", pid);
  struct str line, rest = file_read(path, &b) ? STR("") : buf_str(&b), word;
  while (rest.n > 0) {
    int64_t seconds = 0, nanoseconds = 0;
    str_cut(rest, '\n', &line, &rest);
    if (!str_starts(line, STR("boottime")))
      continue;
    str_cut(str_trim(str_skip(line, strlen("boottime"))), ' ', &word, &line);
    if (!str_i64(word, &seconds) && !str_i64(str_trim(line), &nanoseconds))
      return seconds * 1000000 + nanoseconds / 1000;
  }
  return 0;
}

static void drop(size_t at)
{
  struct watched *w = server.boxes.p[at];
  for (size_t i = 0; i < VIEW_LIVE; i++)
    close(w->live[i]); /* the marks go with the files */
  free(w);
  vec_remove_swap(&server.boxes, at);
}

static void forget(const char *instance, const char *id)
{
  for (size_t i = server.boxes.n; i-- > 0;)
    if (!strcmp(server.boxes.p[i]->id, id) && !strcmp(server.boxes.p[i]->instance, instance))
      drop(i);
}

void view_watch(const char *instance, const char *id, pid_t pid, struct limit_view *view)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  struct stat st;
  char cpus[CGROUP_CPUS_TEXT];
  if (fstat(view->live[0], &st))
    return;
  struct watched *w = xcalloc(1, sizeof(*w));
  snprintf(w->instance, sizeof(w->instance), "%s", instance);
  snprintf(w->id, sizeof(w->id), "%s", id);
  w->device = st.st_dev;
  w->offset_usec = uptime_offset(pid);
  w->last.cpus = cgroup_host()->cpus(instance, id, cpus, sizeof(cpus)) ? (unsigned)get_nprocs() : view_count_cpus(cpus);
  for (size_t i = 0; i < VIEW_LIVE; i++)
    w->live[i] = steal_fd(&view->live[i]);
  pthread_once(&once, begin);
  pthread_mutex_lock(&server.lock);
  forget(instance, id);
  vec_push(&server.boxes, w);
  ask(w, true);
  pthread_mutex_unlock(&server.lock);
}

void view_forget(const char *instance, const char *id)
{
  pthread_mutex_lock(&server.lock);
  forget(instance, id);
  pthread_mutex_unlock(&server.lock);
}

/* The way there is through the box's root, which root of the box may have changed (chroot of its first process): only
 * a file of a tmpfs that belongs to the host's root is one of ours, and all of them must lie on one. */
static bool is_ours(int fd, dev_t *device)
{
  struct stat st;
  struct statfs fs;
  if (fstat(fd, &st) || fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC || !S_ISREG(st.st_mode) || st.st_uid ||
      (st.st_mode & 07777) != 0444 || (*device && *device != st.st_dev))
    return false;
  *device = st.st_dev;
  return true;
}

void view_adopt(const char *instance, const char *id, pid_t pid)
{
  char path[PROC_PATH];
  cleanup_view struct limit_view view = LIMIT_VIEW_NONE;
  dev_t device = 0;
  snprintf(path, sizeof(path), "/proc/%d/root", pid);
  cleanup_fd int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (size_t i = 0; i < VIEW_LIVE && root >= 0; i++) {
    cleanup_fd int found = path_open_in(root, view_points[i], O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (found < 0 || !is_ours(found, &device))
      return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
    view.live[i] = open(path, O_WRONLY | O_CLOEXEC);
    if (view.live[i] < 0)
      return;
  }
  if (root >= 0)
    view_watch(instance, id, pid, &view);
}
