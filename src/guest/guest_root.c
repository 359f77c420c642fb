/* SPDX-License-Identifier: Apache-2.0 */
/* guest_root.c - modules, disks and mounts of a guest.
 *
 * Disks are told apart by their serial: l0 (top) to lN are read-only erofs images of layers, the last of them with the
 * runtime; `scratch` is the box's own ext4. Together they are the same overlay that a box without a guest has. */
#include "wire/guest_frame.h"
#include "guest/guest.h"
#include "jail/fs/etc_files.h"
#include "jail/jail_defs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define DISK_WAIT_MS 10000

static void make_dir(const char *path, unsigned mode)
{
  if (mkdir(path, mode) && errno != EEXIST)
    guest_die("making %s: %s", path, strerror(errno));
}

static void attach(const char *what, const char *at, const char *type, unsigned long flags, const char *options)
{
  if (mount(what, at, type, flags, options))
    guest_die("mounting %s (%s) on %s: %s", what, type, at, strerror(errno));
}

/* ---- modules ---- */

static int is_module(const struct dirent *e)
{
  size_t n = strlen(e->d_name);
  return n > 3 && !strcmp(e->d_name + n - 3, ".ko");
}

void guest_load_modules(const char *dir)
{
  struct dirent **list = NULL;
  int n = scandir(dir, &list, is_module, alphasort);
  for (int i = 0; i < n; i++) {
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
      guest_die("loading %s: %s", path, strerror(errno));
    free(list[i]);
  }
  free(list);
}

/* ---- disks ---- */

static bool has_serial(const char *name, const char *serial)
{
  char path[300];
  cleanup_buf struct buf b = BUF_INIT(256);
  snprintf(path, sizeof(path), "/sys/block/%s/serial", name);
  return !file_read(path, &b) && str_is(str_trim(buf_str(&b)), serial);
}

static bool look_for(const char *serial, char out[300])
{
  cleanup_dir DIR *d = opendir("/sys/block");
  for (struct dirent *e; d && (e = readdir(d));)
    if (has_serial(e->d_name, serial)) {
      snprintf(out, 300, "/dev/%s", e->d_name);
      return access(out, F_OK) == 0;
    }
  return false;
}

static void find_disk(const char *serial, char out[300])
{
  for (int waited = 0; !look_for(serial, out); waited += 5) {
    if (waited >= DISK_WAIT_MS)
      guest_die("the disk %s did not appear", serial);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  }
}

static void mount_layers(unsigned n, struct buf *lowers)
{
  make_dir("/l", 0755);
  for (unsigned i = 0; i < n; i++) {
    char serial[16], disk[300], at[32];
    snprintf(serial, sizeof(serial), "l%u", i);
    snprintf(at, sizeof(at), "/l/%u", i);
    find_disk(serial, disk);
    make_dir(at, 0755);
    attach(disk, at, "erofs", MS_RDONLY, NULL);
    buf_addf(lowers, "%s%s", i ? ":" : "", at);
  }
}

/* Agent and kernels are the server's: a read-only mount over whatever the template or the box has there. */
static void mount_runtime(unsigned layers)
{
  static const char *const way[] = {GUEST_ROOT "/usr", GUEST_ROOT "/usr/lib", GUEST_ROOT JAIL_RUNTIME};
  char from[64];
  for (size_t i = 0; i < ARRAY_LEN(way); i++)
    make_dir(way[i], 0755);
  snprintf(from, sizeof(from), "/l/%u" JAIL_RUNTIME, layers - 1);
  attach(from, GUEST_ROOT JAIL_RUNTIME, "none", MS_BIND, NULL);
}

void guest_make_root(const struct guest_config *c)
{
  char disk[300];
  struct err err = ERR_NONE;
  cleanup_buf struct buf options = BUF_INIT(4000);
  buf_addz(&options, "upperdir=/s/upper,workdir=/s/work,lowerdir=");
  mount_layers(c->layers, &options);
  find_disk("scratch", disk);
  make_dir("/s", 0700);
  attach(disk, "/s", "ext4", 0, NULL);
  make_dir("/s/upper", 0755);
  make_dir("/s/work", 0755);
  cleanup_fd int tree = open("/s", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (tree < 0 || etc_write(tree, c->hostname, c->nameserver, &err))
    guest_die("/etc: %s", err.msg);
  make_dir(GUEST_ROOT, 0755);
  attach("overlay", GUEST_ROOT, "overlay", 0, buf_z(&options));
  mount_runtime(c->layers);
}

/* ---- the agent's view ---- */

static void link_to(const char *to, const char *at)
{
  if (symlink(to, at) && errno != EEXIST)
    guest_die("linking %s: %s", at, strerror(errno));
}

static void mount_kernel_trees(void)
{
  static const struct {
    const char *type, *at, *options;
    unsigned long flags;
    unsigned mode;
  } trees[] = {
      {"proc", "/proc", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC, 0555},
      {"sysfs", "/sys", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC, 0555},
      {"cgroup2", "/sys/fs/cgroup", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC, 0555},
      {"devtmpfs", "/dev", "mode=0755", MS_NOSUID, 0755},
      {"devpts", "/dev/pts", "ptmxmode=0666,mode=0620,gid=5", MS_NOSUID | MS_NOEXEC, 0755},
      {"tmpfs", "/dev/shm", "mode=1777", MS_NOSUID | MS_NODEV, 01777},
      {"mqueue", "/dev/mqueue", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC, 01777},
  };
  for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
    if (strncmp(trees[i].at, "/sys/", 5))
      make_dir(trees[i].at, trees[i].mode);
    attach(trees[i].type, trees[i].at, trees[i].type, trees[i].flags, trees[i].options);
  }
  link_to("/proc/self/fd", "/dev/fd");
  link_to("/proc/self/fd/0", "/dev/stdin");
  link_to("/proc/self/fd/1", "/dev/stdout");
  link_to("/proc/self/fd/2", "/dev/stderr");
}

void guest_enter_root(const struct guest_config *c)
{
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || chdir(GUEST_ROOT) || mount(".", "/", NULL, MS_MOVE, NULL) ||
      chroot(".") || chdir("/"))
    guest_die("entering the root: %s", strerror(errno));
  umask(0);
  mount_kernel_trees();
  make_dir("/tmp", 01777);
  make_dir("/run", 0755);
  umask(022);
  if (sethostname(c->hostname, strlen(c->hostname)))
    guest_die("hostname: %s", strerror(errno));
}
