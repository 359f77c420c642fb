/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - see watch.h.
 *
 * A rename inside the tree comes as MOVED_FROM and MOVED_TO with one cookie, one right after the other. The first is
 * kept in mind: when the second follows, the directories below get their new names; when anything else follows, the
 * directory has left the tree and its watches are taken down. */
#include "agent/envd/watch.h"
#include "agent/envd/messages.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define MASK                                                                                                           \
  (IN_CREATE | IN_MODIFY | IN_DELETE | IN_DELETE_SELF | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_ATTRIB)
#define SUBDIR_MASK (MASK | IN_ONLYDIR | IN_DONT_FOLLOW)
#define DEPTH_MAX   512

struct node {
  int wd;
  char *name; /* relative; "" for the watched directory */
};

struct watch {
  int fd;
  bool recursive;
  char *path;
  struct map nodes; /* by wd */
  uint32_t moved_cookie;
  char *moved_name; /* of a directory whose MOVED_TO may follow */
};

/* ---- nodes ---- */

static struct str wd_key(const int *wd)
{
  return str_make(wd, sizeof(*wd));
}

static void node_free(struct node *n)
{
  free(n->name);
  free(n);
}

static void node_forget(struct watch *w, int wd)
{
  struct node *n = map_del(&w->nodes, wd_key(&wd));
  if (n)
    node_free(n);
}

/* 1 = new, 0 = was there under that name already, negative errno. */
static int node_add(struct watch *w, const char *full, const char *name, uint32_t mask)
{
  int wd = inotify_add_watch(w->fd, full, mask);
  if (wd < 0)
    return -errno;
  struct node *old = map_get(&w->nodes, wd_key(&wd));
  if (old && strcmp(old->name, name) == 0)
    return 0;
  if (old)
    node_forget(w, wd);
  struct node *n = xcalloc(1, sizeof(*n));
  n->wd = wd;
  n->name = xstrdup(name);
  map_put(&w->nodes, wd_key(&wd), n);
  return 1;
}

/* Is `name` the directory `dir` or something below it? */
static bool below(const char *name, const char *dir)
{
  size_t n = strlen(dir);
  return strncmp(name, dir, n) == 0 && (name[n] == '\0' || name[n] == '/');
}

static void tree_rename(struct watch *w, const char *from, const char *to)
{
  struct str key;
  void *value;
  for (size_t i = 0; map_next(&w->nodes, &i, &key, &value);) {
    struct node *n = value;
    if (!below(n->name, from))
      continue;
    char *name = xasprintf("%s%s", to, n->name + strlen(from));
    free(n->name);
    n->name = name;
  }
}

static void tree_forget(struct watch *w, const char *dir)
{
  struct str key;
  void *value;
  for (size_t i = 0; map_next(&w->nodes, &i, &key, &value);) {
    struct node *n = value;
    if (!below(n->name, dir))
      continue;
    inotify_rm_watch(w->fd, n->wd);
    node_forget(w, n->wd);
  }
}

/* ---- walking what is there ---- */

struct walk {
  struct watch *w;
  watch_fn fn; /* NULL: only add watches */
  void *arg;
};

static int dir_add(struct walk *walk, const char *name, int depth);

static int child_seen(struct walk *walk, const char *dir, const struct dirent *e, int depth)
{
  if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
    return 0;
  cleanup_free char *name = xasprintf("%s%s%s", dir, dir[0] ? "/" : "", e->d_name);
  if (walk->fn)
    walk->fn(CHANGE_CREATE, str_of(name), walk->arg);
  bool maybe_dir = e->d_type == DT_DIR || e->d_type == DT_UNKNOWN;
  return maybe_dir ? dir_add(walk, name, depth + 1) : 0;
}

/* Watches a directory and everything below. Those that can't be watched are passed over, but the end of the kernel's
 * watches is notified. */
static int dir_add(struct walk *walk, const char *name, int depth)
{
  cleanup_free char *full = xasprintf("%s/%s", walk->w->path, name);
  int rc =
      depth > DEPTH_MAX ? 0 : node_add(walk->w, name[0] ? full : walk->w->path, name, name[0] ? SUBDIR_MASK : MASK);
  if (rc <= 0)
    return rc == -ENOSPC || (rc < 0 && !name[0]) ? rc : 0;
  if (!walk->w->recursive)
    return 0;
  DIR *dir = opendir(full);
  rc = 0;
  for (struct dirent *e; dir && rc == 0 && (e = readdir(dir));)
    rc = child_seen(walk, name, e, depth);
  if (dir)
    closedir(dir);
  return rc;
}

/* ---- life ---- */

static bool on_network(const char *path)
{
  static const unsigned long kinds[] = {0x6969, 0xFF534D42, 0x517B, 0xFE534D42, 0x65735546};
  struct statfs fs;
  if (statfs(path, &fs) < 0)
    return false;
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
    if (((unsigned long)fs.f_type & 0xFFFFFFFFul) == kinds[i])
      return true;
  return false;
}

int watch_open(const char *path, bool recursive, bool network, struct watch **out)
{
  struct stat st;
  if (stat(path, &st) < 0)
    return errno == ENOTDIR ? -ENOENT : -errno;
  if (!S_ISDIR(st.st_mode))
    return -ENOTDIR;
  if (!network && on_network(path))
    return -EXDEV;
  int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd < 0)
    return -errno;
  struct watch *w = xcalloc(1, sizeof(*w));
  w->fd = fd;
  w->recursive = recursive;
  w->path = xstrdup(path);
  struct walk walk = {.w = w};
  int rc = dir_add(&walk, "", 0);
  if (rc < 0)
    watch_close(w);
  else
    *out = w;
  return rc;
}

void watch_close(struct watch *w)
{
  struct str key;
  void *value;
  for (size_t i = 0; map_next(&w->nodes, &i, &key, &value);)
    node_free(value);
  map_free(&w->nodes);
  close(w->fd);
  free(w->moved_name);
  free(w->path);
  free(w);
}

int watch_fd(const struct watch *w)
{
  return w->fd;
}

const char *watch_path(const struct watch *w)
{
  return w->path;
}

/* ---- events ---- */

static void moved_settle(struct watch *w, const struct inotify_event *ev)
{
  if (!w->moved_name || (ev->mask & IN_MOVED_TO && ev->cookie == w->moved_cookie))
    return;
  tree_forget(w, w->moved_name);
  free(w->moved_name);
  w->moved_name = NULL;
}

static bool name_watched(const struct watch *w, const char *name)
{
  struct str key;
  void *value;
  for (size_t i = 0; map_next(&w->nodes, &i, &key, &value);)
    if (strcmp(((struct node *)value)->name, name) == 0)
      return true;
  return false;
}

/* True when the event has been reported already by the walk that found this directory. */
static bool dir_arrived(struct watch *w, const struct inotify_event *ev, const char *name, watch_fn fn, void *arg)
{
  if (ev->mask & IN_MOVED_TO && w->moved_name) {
    tree_rename(w, w->moved_name, name);
    free(w->moved_name);
    w->moved_name = NULL;
    fn(CHANGE_CREATE, str_of(name), arg);
    return true;
  }
  if (name_watched(w, name))
    return true;
  fn(CHANGE_CREATE, str_of(name), arg);
  struct walk walk = {w, fn, arg};
  dir_add(&walk, name, 0);
  return true;
}

static void event_tell(struct watch *w, const struct inotify_event *ev, const struct node *n, const char *name,
                       watch_fn fn, void *arg)
{
  bool dir = w->recursive && ev->mask & IN_ISDIR && ev->len > 0;
  bool inner = n->name[0] != '\0';
  uint32_t mask = ev->mask;
  if (inner)
    mask &= ~(uint32_t)(IN_MOVE_SELF | IN_DELETE_SELF);
  if (dir && mask & IN_MOVED_FROM) {
    free(w->moved_name);
    w->moved_name = xstrdup(name);
    w->moved_cookie = ev->cookie;
  }
  if (dir && mask & (IN_CREATE | IN_MOVED_TO) && dir_arrived(w, ev, name, fn, arg))
    mask &= ~(uint32_t)(IN_CREATE | IN_MOVED_TO);
  const struct {
    uint32_t bits, type;
  } kinds[] = {
      {IN_CREATE | IN_MOVED_TO, CHANGE_CREATE},
      {IN_MOVED_FROM | IN_MOVE_SELF, CHANGE_RENAME},
      {IN_ATTRIB, CHANGE_CHMOD},
      {IN_MODIFY, CHANGE_WRITE},
      {IN_DELETE | IN_DELETE_SELF, CHANGE_REMOVE},
  };
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
    if (mask & kinds[i].bits)
      fn(kinds[i].type, str_of(name), arg);
}

static int event_take(struct watch *w, const struct inotify_event *ev, watch_fn fn, void *arg)
{
  if (ev->mask & IN_Q_OVERFLOW)
    return -EOVERFLOW;
  moved_settle(w, ev);
  const struct node *n = map_get(&w->nodes, wd_key(&ev->wd));
  if (!n)
    return 0;
  if (ev->mask & IN_IGNORED) {
    node_forget(w, ev->wd);
    return 0;
  }
  if (ev->mask & IN_UNMOUNT)
    return 0;
  const char *slash = n->name[0] && ev->len ? "/" : "";
  cleanup_free char *name = xasprintf("%s%s%s", n->name, slash, ev->len ? ev->name : n->name[0] ? "" : ".");
  event_tell(w, ev, n, name, fn, arg);
  return 0;
}

int watch_read(struct watch *w, watch_fn fn, void *arg)
{
  _Alignas(struct inotify_event) char bytes[16 << 10];
  ssize_t n;
  while ((n = read(w->fd, bytes, sizeof(bytes))) > 0)
    for (ssize_t at = 0; at < n;) {
      const struct inotify_event *ev = (const void *)(bytes + at);
      int rc = event_take(w, ev, fn, arg);
      if (rc < 0)
        return rc;
      at += (ssize_t)(sizeof(*ev) + ev->len);
    }
  return 0;
}
