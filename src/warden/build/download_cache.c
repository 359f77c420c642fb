/* SPDX-License-Identifier: Apache-2.0 */
/* download_cache.c - see download_cache.h. */
#include "warden/build/download_cache.h"
#include "warden/core/context.h"

#include "jail/fs/disk.h"
#include "jail/fs/disk_image.h"
#include "wire/sizes.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mount.h>

#define INODE_BYTES 8192 /* one inode per so many bytes: npm keeps many small files */

struct cache_disk {
  int fd; /* its directory; 0: it is not available */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map disks; /* team -> struct cache_disk */

static void boot_name(char out[40])
{
  cleanup_buf struct buf b = BUF_INIT(256);
  if (file_read("/proc/sys/kernel/random/boot_id", &b) || str_copyz(str_trim(buf_str(&b)), out, 40))
    snprintf(out, 40, "unknown");
}

/* Disks of earlier boots were not closed in an orderly way, perhaps. */
static void clear_others(const char *top, const char *boot)
{
  DIR *d = opendir(top);
  for (struct dirent *e; d && (e = readdir(d));)
    if (e->d_name[0] != '.' && strcmp(e->d_name, boot)) /* seeds of disks begin with a dot */
      path_remove_tree(dirfd(d), e->d_name);
  if (d)
    closedir(d);
}

/* A box that an earlier warden left may still hold the disk; mounted twice it would be ruined. */
static bool in_use(const char *image)
{
  DIR *d = opendir("/sys/block");
  bool found = false;
  for (struct dirent *e; d && !found && (e = readdir(d));) {
    char path[400];
    cleanup_buf struct buf b = BUF_INIT(8192);
    snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", e->d_name);
    found = !strncmp(e->d_name, "loop", 4) && !file_read(path, &b) && str_is(str_trim(buf_str(&b)), image);
  }
  if (d)
    closedir(d);
  return found;
}

static int open_disk(struct warden *w, const char *team, struct err *err)
{
  char top[DATA_PATH_SIZE], boot[40], dir[DATA_PATH_SIZE], image[DATA_PATH_SIZE];
  struct jail_limits limits = {.disk = (uint64_t)warden_config(w)->download_cache_mb << 20};
  limits.inodes = limits.disk / INODE_BYTES;
  boot_name(boot);
  snprintf(top, sizeof(top), "%s/cache/downloads", warden_config(w)->data);
  snprintf(dir, sizeof(dir), "%s/%s/%s", top, boot, team);
  snprintf(image, sizeof(image), "%s/disk.img", dir);
  clear_others(top, boot);
  int r = path_mkdirs(dir, 0700);
  if (r)
    return err_set(err, r, "making %s: %s", dir, strerrordesc_np(-r));
  if (in_use(image))
    return err_set(err, -EBUSY, "a box of an earlier build still holds %s", image);
  /* A new one is made here and not by disk_open, which would add a pool of that size. */
  cleanup_fd int disk = access(image, F_OK) ? disk_make(top, image, &limits, err) : disk_open(dir, &limits, err);
  if (disk < 0)
    return disk;
  int fd = open_tree(disk, "upper", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  return fd < 0 ? err_errno(err, "opening %s", image) : fd;
}

int download_cache_open(struct warden *w, const char *team)
{
  struct err err = ERR_NONE;
  if (!warden_config(w)->download_cache_mb)
    return 0;
  pthread_mutex_lock(&lock);
  struct cache_disk *have = map_get(&disks, str_of(team));
  if (!have) {
    have = xcalloc(1, sizeof(*have));
    have->fd = open_disk(w, team, &err);
    if (have->fd < 0) {
      log_warn("builds of team %s keep no downloads: %s", team, err.msg);
      have->fd = 0;
    }
    map_put(&disks, str_of(team), have);
  }
  int fd = have->fd;
  pthread_mutex_unlock(&lock);
  return fd;
}
