/* SPDX-License-Identifier: Apache-2.0 */
/* jail.h - how a box is isolated. The warden's side of namespaces, mounts, id maps, cgroups, seccomp and network.
 *
 * A jail is: a process tree in its own user, pid, mount, net, ipc, uts and cgroup namespaces; a 65,536-id range of its
 * own; an overlay root over the template's layers; cgroup limits; a seccomp list. Everything a jail makes on the host
 * carries the instance's name, so that a sweep finds what a crash left behind. All calls here may block for a
 * few milliseconds and may run on any thread. A thread of the jail's own makes disks ahead (disk_pool.h). */
#ifndef CLOCHE_JAIL_H
#define CLOCHE_JAIL_H

#include "jail/jail_defs.h"

/* A volume (fs/volume_backing.h) and where the box has it. */
struct jail_volume {
  const char *id, *path;
};

/* A guest of its own (docs/microvm.md): the program runs behind a second kernel, on images of the same layers; the jail
 * is around QEMU. The limits are the jail's. Volumes and a cache can't be given. */
struct jail_vm {
  const char *parts; /* vm/vm_parts.h */
  bool emulated;     /* without KVM: for tests */
  unsigned cpus;
  uint64_t memory;  /* bytes, of the guest */
  uint32_t address; /* of the guest, host byte order */
};
#define JAIL_VM_OVERHEAD          ((uint64_t)96 << 20)  /* of QEMU, beside the guest's memory */
#define JAIL_VM_OVERHEAD_EMULATED ((uint64_t)400 << 20) /* with translated code */
#define JAIL_VM_PIDS              128                   /* threads of QEMU */

struct jail_spec {
  const char *instance;      /* [a-z0-9-], names all host objects: cgroup "cloche-<instance>/<id>" */
  const char *id;            /* box id */
  const char *dir;           /* host directory of this box (made here, mode 0700): upper, work, ... */
  const char *const *lowers; /* layer directories, top first, NULL-terminated */
  uint32_t id_base;          /* first host uid and gid of the range */
  const char
      *shifted; /* directory for copies of layers whose filesystem can't map ids; NULL: such a layer is an error */
  const char *hostname;
  const char *const *argv; /* program inside the box, absolute path; NULL-terminated */
  const char *const *env;
  int boot_fd;         /* becomes fd 3 of the program; borrowed */
  const char *console; /* file inside the box for the program's fds 1 and 2, made if absent; NULL: /dev/null */
  struct jail_limits limits;
  const struct jail_net *net; /* NULL: loopback only */
  const char *nameserver;     /* for /etc/resolv.conf; NULL: the gateway of `net`, if there is one */
  const char *runtime;        /* host directory that the box sees at JAIL_RUNTIME and can't write to; NULL: none */
  int cache;                  /* a directory that the box sees at JAIL_CACHE and may write to; 0: none; borrowed */
  const struct jail_volume *volumes; /* mounted before the program can read from boot_fd what is sent later */
  size_t volumes_n;                  /* JAIL_VOLUMES_MAX at most */
  const struct volume_place *volume_place;
  uint32_t owner;           /* host user whose processes may enter this box (jail_enter_fds); 0 = root's only */
  bool keep_dir;            /* dir holds a paused box's files: a launch that fails leaves it as it is */
  const struct jail_vm *vm; /* NULL: the program is a process of the host's kernel */
  bool zygote; /* no user namespace, a filter that lets forks enter boxes: the program runs as id_base itself, without
                  rights */
};

/* A living jail. Plain data: may be written to the database and filled again by jail_adopt. */
struct jail {
  struct proc_id init; /* pid 1 of the box as the host sees it */
  int pidfd;           /* readable when it is over; owned */
  int netns;           /* for jail_connect; owned */
};
#define JAIL_NONE ((struct jail){.pidfd = -1, .netns = -1})

int jail_spawn(const struct jail_spec *spec, struct jail *out, struct err *err);
/* The same in two halves. A created jail has namespaces, ids, control groups and its link, and waits: of the spec,
 * directory, layers, program and boot_fd are looked at by jail_start only, the rest must be the same both times.
 * jail_start takes the created jail, whatever happens. */
struct jail_created;
int jail_create(const struct jail_spec *spec, struct jail_created **out, struct err *err);
int jail_start(const struct jail_spec *spec, struct jail_created *created, struct jail *out, struct err *err);
void jail_created_free(struct jail_created *created); /* with all it has on the host */
/* Finds a jail again after a restart of the daemon: -ESRCH when it is gone. */
int jail_adopt(const char *instance, const char *id, struct proc_id init, struct jail *out, struct err *err);
/* SIGKILL to pid 1, which ends all of its namespace, and no more; jail_kill may follow. */
void jail_kill_init(const struct jail *j);
/* Kills everything inside at once (pid 1 first, then what the cgroup still holds). Does not wait. */
int jail_kill(const char *instance, const char *id, const struct jail *j, struct err *err);
/* After death: waits (bounded) for the cgroup to empty, removes cgroups, mounts and the box directory. Idempotent. */
int jail_remove(const char *instance, const char *id, const char *dir, struct err *err);
/* The same, with another wait for its last process to be gone. -EAGAIN: it is not, nothing else was removed. */
int jail_remove_within(const char *instance, const char *id, const char *dir, int wait_ms, struct err *err);
/* Writes a dead box's files out to the host's disk; until then only a crash of the host can harm them. */
int jail_sync(const char *dir, struct err *err);
/* Waits for the end of pid 1 and reaps it. Exit code, 128 + signal, or -1 where another process is its parent. */
int jail_wait(const struct jail *j, int timeout_ms, int *status);
void jail_close(struct jail *j); /* descriptors only, a living box lives on; a dead one is reaped */

/* The host user that the box's user namespace belongs to (spec->owner, else the box's own root); 0 = can't be told. */
uint32_t jail_owner(const struct jail *j);

/* What a process of spec->owner needs to become one of the box's own: a pidfd of its first process, the system call
 * filter as a file, and the control groups to write "0" to. For zygotes, whose forks enter boxes
 * (docs/kernel-protocol.md). */
#define JAIL_ENTER_FDS_MAX 12
struct jail_enter_fds {
  int fds[JAIL_ENTER_FDS_MAX]; /* owned */
  size_t n;
};
int jail_enter_fds(const struct jail_spec *spec, const struct jail *j, struct jail_enter_fds *enter_fds,
                   struct err *err);
void jail_enter_fds_close(struct jail_enter_fds *enter_fds);
uint64_t jail_capabilities(void); /* the mask such a process keeps */

/* A stream socket connected to 127.0.0.1:port (else [::1]:port) inside the box: non-blocking, close-on-exec, no delay.
 * -ECONNREFUSED when nothing listens. Where a service's queue is full it is waited for, or (not wait) still connecting
 * when it is handed out. */
int jail_connect(const struct jail *j, unsigned port, bool wait, struct err *err);

/* A stream socket inside the box, bound to a name without a file, on which the caller may listen(): non-blocking,
 * close-on-exec. Whoever is in the box may connect to it. */
int jail_listen_unix(const struct jail *j, const char *name, struct err *err);

int jail_stat(const char *instance, const char *id, const char *dir, struct jail_stats *out, struct err *err);
/* The name of the process that was last killed in this box for memory, from the kernel's log. -ENOENT: none known. */
int jail_oom_victim(const char *instance, const char *id, char *out, size_t size);
/* Takes spec.cache out of a box's sight, so that nothing of outside is mounted in it any more. */
int jail_uncache(const struct jail *j, struct err *err);
/* Mounts spec->volumes into a box that was launched without them; it may be frozen. */
int jail_mount_volumes(const struct jail_spec *spec, const struct jail *j, struct err *err);
/* See volume_mount.h. */
int jail_volume_readonly(const struct volume_place *p, const char *id, struct proc_id init, bool readonly,
                         struct err *err);
int jail_freeze(const char *instance, const char *id, bool frozen, struct err *err);

/* Removes whatever host objects of this instance belong to no living box. `known` says which ids to keep. */
int jail_sweep(const char *instance, bool (*known)(const char *id, void *arg), void *arg, struct err *err);
/* Makes the instance's top cgroups etc. at daemon start; jail_instance_close removes them when empty. */
int jail_instance_open(const char *instance, struct err *err);
void jail_instance_close(const char *instance);

#endif
