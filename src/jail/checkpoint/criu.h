/* SPDX-License-Identifier: Apache-2.0 */
/* criu.h - one run of criu: a child that is told what to do in one message and asks back at a few points.
 *
 * criu gets a mount namespace of its own, with a tmpfs on /run (its cache of what the kernel can) and, for a restore,
 * the box's root on /run/root, the checkpoint on /run/checkpoint and the runtime files on /run/runtime; so nothing of a
 * run is left in the host's tree, however it ends. A restoring criu is put into the box's control groups, where its
 * children stay. */
#ifndef CLOCHE_JAIL_CHECKPOINT_CRIU_H
#define CLOCHE_JAIL_CHECKPOINT_CRIU_H

#include "jail/boot_id.h"
#include "jail/limit_view.h"
#include "jail/cgroup.h"
#include "jail/checkpoint/checkpoint.h"
#include "jail/checkpoint/criu_view.h"

#define CRIU_LOG        "criu.log"
#define CRIU_BOOT_ID    "/run/boot_id/" BOOT_ID_NAME /* and what they have at BOOT_ID_POINT */
#define CRIU_LIMIT_VIEW "/run/view"                  /* and the files of limit_view.h */
#define CRIU_VOLUME     "volume:"      /* a volume's id follows; the restore mounts it below /run/volumes */
#define CRIU_GROUPS     "cgroup:"      /* one of cgroup_shown follows; the restore looks where it is */
#define CRIU_RUNTIME    "/run/runtime" /* where a restoring criu finds what boxes have at JAIL_RUNTIME */

struct criu_handle {
  const char *key;
  int fd; /* borrowed */
};

struct criu_job {
  const struct jail_criu *criu;
  int work;       /* directory of the log; borrowed, as all descriptors here */
  uint32_t owner; /* of the box's user namespace */
  VEC(const char *) external;
  /* a dump */
  int checkpoint; /* directory */
  pid_t pid;
  const char *freezer; /* directory of the control group that freezes the box */
  int journal;         /* what it is about to change in processes (rescue.h); 0: none */
  bool died;           /* out: it ended without a word, or was ended for taking too long or writing too much */
  int (*going)(void *arg, struct err *err); /* asked several times a second; ends it where it fails; or NULL */
  /* a restore */
  bool restore;
  int root;           /* detached mount */
  int runtime;        /* another, or -1 */
  int boot_id;        /* a third, with the file of that name */
  int files;          /* a fourth, with those of limit_view.h */
  const int *volumes; /* detached mounts for /run/volumes/0 and so on */
  size_t volumes_n;
  const struct criu_view *view;
  const struct cgroup_join *join;
  VEC(struct criu_handle) handles;
  int (*ready)(pid_t init, void *arg, struct err *err);  /* the namespaces are there, the processes not yet */
  int (*filled)(pid_t init, void *arg, struct err *err); /* the processes are there and do not run yet */
  int (*leave)(pid_t init, void *arg, struct err *err);  /* criu is about to let them run */
  void (*failed)(void *arg);                             /* nothing comes of it, and all of criu is to end */
  void *arg;
};

/* A criu that has begun and waits for its task. */
struct criu_child {
  pid_t pid;
  int sock, pidfd;
};
#define CRIU_CHILD_NONE ((struct criu_child){.pid = 0, .sock = -1, .pidfd = -1})

/* Starts it ahead, while the task is still being found out: for a dump, of whose job only criu, owner and journal must
 * be known. Then one of the others. */
int criu_begin(const struct criu_job *job, struct criu_child *out, struct err *err);
void criu_abandon(struct criu_child *c);
int criu_finish(struct criu_job *job, struct criu_child *c, pid_t *init, struct err *err);

/* Begins and finishes. 0 and the restored first process, or -EREMOTEIO where criu itself failed and its log tells more.
 * What a failed restore made as our children is dead and reaped then. */
int criu_run(struct criu_job *job, pid_t *init, struct err *err);

#endif
