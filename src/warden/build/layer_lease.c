/* SPDX-License-Identifier: Apache-2.0 */
/* layer_lease.c - see layer_lease.h. */
#include "warden/build/layer_lease.h"

#include "wire/sizes.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool layer_lease(const char *dir)
{
  pthread_mutex_lock(&lock);
  bool there = !utimensat(AT_FDCWD, dir, NULL, AT_SYMLINK_NOFOLLOW);
  pthread_mutex_unlock(&lock);
  return there;
}

bool layer_lease_tree(const char *fs)
{
  char dir[DATA_PATH_SIZE];
  struct str path = str_of(fs);
  if (!str_ends(path, STR("/fs")) || str_copyz(str_sub(path, 0, path.n - 3), dir, sizeof(dir)))
    return false;
  return layer_lease(dir) && access(fs, F_OK) == 0;
}

bool layer_remove_unleased(const char *dir, const char *gone, int64_t since)
{
  struct stat st;
  pthread_mutex_lock(&lock);
  bool went = !lstat(dir, &st) && st.st_mtime < since && !rename(dir, gone);
  pthread_mutex_unlock(&lock);
  return went;
}
