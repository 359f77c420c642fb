/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_user.c - see fetch_user.h. Files are handed over under the lock: the second fetch of a team finds them its own.
 */
#include "warden/build/fetch_user.h"

#include "wire/sizes.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#define DEPTH_MAX 3 /* blobs/sha256/<blob> */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lease {
  char team[UUID_SIZE];
  unsigned fetches; /* 0: free */
} leases[FETCH_USERS_MAX];

static void hand_over(int at, const char *name, uint32_t uid, int depth)
{
  struct stat st;
  if (fchownat(at, name, uid, uid, AT_SYMLINK_NOFOLLOW) || depth == DEPTH_MAX)
    return;
  int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  for (struct dirent *e; d && (e = readdir(d));)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
        !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) && (st.st_uid != uid || S_ISDIR(st.st_mode)))
      hand_over(dirfd(d), e->d_name, uid, depth + 1);
  if (d)
    closedir(d);
  else if (fd >= 0)
    close(fd);
}

/* The team's, else a free one; NULL where there is none. */
static struct lease *find(const char *team, unsigned most)
{
  struct lease *unused = NULL;
  for (unsigned i = 0; i < most; i++) {
    if (leases[i].fetches && !strcmp(leases[i].team, team))
      return &leases[i];
    if (!leases[i].fetches && !unused)
      unused = &leases[i];
  }
  return unused;
}

int fetch_user_take(const struct source_rules *rules, const char *team, int dir, uint32_t *uid, struct err *err)
{
  unsigned most = MIN(MAX(rules->uids, 1u), (unsigned)FETCH_USERS_MAX);
  int r = mkdirat(dir, "blobs", 0700) && errno != EEXIST ? err_errno(err, "making blobs for a fetch") : 0;
  pthread_mutex_lock(&lock);
  struct lease *l = r ? NULL : find(team, most);
  if (l && !l->fetches++) {
    str_copyz(str_sub(str_of(team), 0, sizeof(l->team) - 1), l->team, sizeof(l->team));
    hand_over(dir, "blobs", rules->uid + (uint32_t)(l - leases), 0);
  }
  pthread_mutex_unlock(&lock);
  if (r)
    return r;
  if (!l)
    return err_set(err, -EBUSY, "images are fetched for %u teams at once, which is the most (image_uids); try again",
                   most);
  *uid = rules->uid + (uint32_t)(l - leases);
  return 0;
}

void fetch_user_release(const struct source_rules *rules, uint32_t uid)
{
  uint32_t at = uid - rules->uid;
  if (!uid || at >= FETCH_USERS_MAX)
    return;
  pthread_mutex_lock(&lock);
  leases[at].fetches -= leases[at].fetches > 0;
  pthread_mutex_unlock(&lock);
}
