/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_share.c - see cpu_share.h. The counts are of this process; after a restart they come back from the groups that
 * are there (cgroup open). */
#include "jail/cpu_share.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>

static struct {
  pthread_mutex_t lock;
  struct map boxes; /* "instance/id" -> cpu_set_t * */
  unsigned load[CPU_SETSIZE];
  unsigned next; /* where the next search begins */
} shares = {.lock = PTHREAD_MUTEX_INITIALIZER};

void cpu_share_pick(const unsigned load[CPU_SETSIZE], const cpu_set_t *allowed, unsigned n, unsigned first,
                    cpu_set_t *out)
{
  CPU_ZERO(out);
  while (n-- > 0) {
    unsigned best = CPU_SETSIZE, least = UINT_MAX;
    for (unsigned i = 0; i < CPU_SETSIZE; i++) {
      unsigned cpu = (first + i) % CPU_SETSIZE;
      if (CPU_ISSET(cpu, allowed) && !CPU_ISSET(cpu, out) && load[cpu] < least) {
        best = cpu;
        least = load[cpu];
      }
    }
    if (best == CPU_SETSIZE)
      return;
    CPU_SET(best, out);
  }
}

int cpu_list_write(const cpu_set_t *set, char *list, size_t size)
{
  size_t at = 0;
  list[0] = 0;
  for (unsigned i = 0; i < CPU_SETSIZE; i++) {
    unsigned last = i;
    if (!CPU_ISSET(i, set))
      continue;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
      last++;
    const char *comma = at ? "," : "";
    at += (size_t)(last > i ? snprintf(list + at, size - at, "%s%u-%u", comma, i, last)
                            : snprintf(list + at, size - at, "%s%u", comma, i));
    if (at >= size)
      return -E2BIG;
    i = last;
  }
  return 0;
}

int cpu_list_read(const char *list, cpu_set_t *set)
{
  struct str rest = str_trim(str_of(list)), part, from, to;
  CPU_ZERO(set);
  while (rest.n > 0) {
    uint64_t a, b;
    str_cut(rest, ',', &part, &rest);
    bool range = str_cut(part, '-', &from, &to);
    if (str_u64(range ? from : part, &a) || str_u64(range ? to : part, &b) || a > b || b >= CPU_SETSIZE)
      return -EINVAL;
    for (; a <= b; a++)
      CPU_SET(a, set);
  }
  return 0;
}

struct name {
  char text[256];
};

static struct str name_of(struct name *n, const char *instance, const char *id)
{
  snprintf(n->text, sizeof(n->text), "%s/%s", instance, id);
  return str_of(n->text);
}

static void count(const cpu_set_t *set, int by)
{
  for (unsigned i = 0; i < CPU_SETSIZE; i++)
    if (CPU_ISSET(i, set))
      shares.load[i] += (unsigned)by;
}

static void forget(struct str name)
{
  cpu_set_t *old = map_del(&shares.boxes, name);
  if (old)
    count(old, -1);
  free(old);
}

static void keep(struct str name, const cpu_set_t *set)
{
  cpu_set_t *mine = xmalloc(sizeof(*mine));
  *mine = *set;
  forget(name);
  count(mine, 1);
  map_put(&shares.boxes, name, mine);
}

int cpu_share_take(const char *instance, const char *id, unsigned n, char list[CPU_LIST_TEXT])
{
  struct name name = {0};
  cpu_set_t allowed, set;
  if (sched_getaffinity(0, sizeof(allowed), &allowed))
    return -errno;
  unsigned all = (unsigned)CPU_COUNT(&allowed);
  n = n && n < all ? n : all;
  pthread_mutex_lock(&shares.lock);
  forget(name_of(&name, instance, id));
  cpu_share_pick(shares.load, &allowed, n, shares.next, &set);
  shares.next = (shares.next + n) % CPU_SETSIZE;
  keep(str_of(name.text), &set);
  pthread_mutex_unlock(&shares.lock);
  return cpu_list_write(&set, list, CPU_LIST_TEXT);
}

void cpu_share_adopt(const char *instance, const char *id, const char *list)
{
  struct name name = {0};
  cpu_set_t set;
  if (cpu_list_read(list, &set) || !CPU_COUNT(&set))
    return;
  pthread_mutex_lock(&shares.lock);
  keep(name_of(&name, instance, id), &set);
  pthread_mutex_unlock(&shares.lock);
}

void cpu_share_release(const char *instance, const char *id)
{
  struct name name = {0};
  pthread_mutex_lock(&shares.lock);
  forget(name_of(&name, instance, id));
  pthread_mutex_unlock(&shares.lock);
}
