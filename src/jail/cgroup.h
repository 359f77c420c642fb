/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - the limits of a box, told to either generation of control groups through one table of calls.
 *
 * A box has the group "cloche-<instance>/<id>" in every hierarchy used. Its first process puts itself there (v1) or is
 * created there (v2): moving a process in from outside waits for an RCU grace period, 10 ms and more on an idle host.
 */
#ifndef CLOCHE_CGROUP_H
#define CLOCHE_CGROUP_H

#include "jail/cpu_share.h"
#include "jail/jail_defs.h"

#define CGROUP_JOIN_MAX 8

/* How the child of a clone gets in: descriptors it writes "0" to, and/or the v2 directory it is cloned into. */
struct cgroup_join {
  int fds[CGROUP_JOIN_MAX];
  size_t n;
  int into; /* for CLONE_INTO_CGROUP; -1 = none */
};
#define CGROUP_JOIN_NONE ((struct cgroup_join){.into = -1})
void cgroup_join_close(struct cgroup_join *join);
#define cleanup_join __attribute__((cleanup(cgroup_join_close)))

/* What a box has used, in bytes and microseconds; 0 where the host does not count it. */
struct cgroup_usage {
  uint64_t limit, used; /* memory; limit 0 = none */
  uint64_t file, shmem, anon, active_file, inactive_file, active_anon, inactive_anon, unevictable;
  uint64_t mapped, dirty, writeback, slab_reclaimable, slab_unreclaimable, kernel_stack, page_tables;
  uint64_t user_usec, system_usec, tasks;
};

/* The hierarchies that a box sees of its own groups, read-only: what runtimes ask for their limits. */
#define CGROUP_SHOWN_MAX 5
extern const char *const cgroup_shown[CGROUP_SHOWN_MAX]; /* v1: directories below /sys/fs/cgroup; v2 has one, itself */
#define CGROUP_CPUS_TEXT CPU_LIST_TEXT                   /* a list of processors as the kernel writes it */

struct cgroup_ops {
  const char *name; /* "v1" or "v2" */
  bool born_inside; /* make comes before the clone, which needs join.into */
  bool unified;     /* one hierarchy, shown at /sys/fs/cgroup itself */
  bool (*usable)(void);
  int (*open)(const char *instance, struct err *err);
  void (*close)(const char *instance);
  int (*make)(const char *instance, const char *id, const struct jail_limits *limits, struct cgroup_join *join,
              struct err *err);
  int (*join)(const char *instance, const char *id, struct cgroup_join *join,
              struct err *err);                        /* of a group that is there */
  int (*kill)(const char *instance, const char *id);   /* SIGKILL to whatever is inside; 0 or -errno */
  int (*remove)(const char *instance, const char *id); /* 0 also when absent; -EBUSY while something lives in it */
  int (*stat)(const char *instance, const char *id, struct jail_stats *out, struct err *err);
  /* `memory`: all of it, else only the limit, processor time and tasks. 0 or -errno. */
  int (*usage)(const char *instance, const char *id, bool memory, struct cgroup_usage *out);
  /* The directory of one of cgroup_shown; -ENOENT where the host has none. */
  int (*shown)(const char *instance, const char *id, size_t which, char *dir, size_t size);
  int (*cpus)(const char *instance, const char *id, char *list, size_t size); /* it may run on; -ENOENT: not limited */
  int (*freeze)(const char *instance, const char *id, bool frozen, struct err *err);
  int (*freezer)(const char *instance, const char *id, char *dir,
                 size_t size);                        /* the group that freezes; also lists all */
  pid_t (*any)(const char *instance, const char *id); /* a process inside, 0 = none */
  int (*each)(const char *instance, void (*seen)(const char *id, void *arg), void *arg);
};

extern const struct cgroup_ops cgroup_v1, cgroup_v2;

/* The generation this host really offers limits with; NULL when neither does. Found once. */
const struct cgroup_ops *cgroup_host(void);

/* Shared by both: small files below a group. 0 or -errno; get fills text, NUL-terminated, closing newline cut. */
int cgroup_put(const char *dir, const char *file, const char *value);
int cgroup_get(const char *dir, const char *file, char *text, size_t size);
int cgroup_get_u64(const char *dir, const char *file, uint64_t *out);
/* The number behind "key " in a file of such lines; 0 when it is not there. */
uint64_t cgroup_get_key(const char *dir, const char *file, const char *key);
uint64_t cgroup_key_in(const char *text, const char *key);                     /* the same in a text that was read */
void cgroup_memory_in(const char *text, bool unified, struct cgroup_usage *u); /* of memory.stat */
void cgroup_adopt_cpus(const struct cgroup_ops *ops, const char *instance); /* cpu_share.h, of groups that are there */
int cgroup_kill_listed(const char *dir);
/* A descriptor of this process, which is in that group; -ESRCH: its number is nobody's or another's by now. */
int cgroup_pidfd(const char *dir, pid_t pid);
pid_t cgroup_first_listed(const char *dir);
int cgroup_each_dir(const char *dir, void (*seen)(const char *id, void *arg), void *arg);

#endif
