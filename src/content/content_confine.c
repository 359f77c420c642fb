/* SPDX-License-Identifier: Apache-2.0 */
/* content_confine.c - see content_confine.h.
 *
 * The user namespace comes first, while this process is root of the host and not yet in another root, which the kernel
 * refuses; a child that stays outside writes its map. From there on nothing on the host belongs to it but what volumes
 * hold. Its root, limits and filter are those of every role (confine/confine.h). */
#include "content/content_confine.h"

#include "base/base.h"
#include "confine/confine.h"
#include "jail/fs/volume_backing.h"
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const int calls[] = {
    SCMP_SYS(openat),       SCMP_SYS(openat2),   SCMP_SYS(newfstatat), SCMP_SYS(statx),    SCMP_SYS(readlinkat),
    SCMP_SYS(unlinkat),     SCMP_SYS(mkdirat),   SCMP_SYS(linkat),     SCMP_SYS(renameat), SCMP_SYS(renameat2),
    SCMP_SYS(fchown),       SCMP_SYS(fchownat),  SCMP_SYS(fchmod),     SCMP_SYS(fstatfs),  SCMP_SYS(getdents64),
    SCMP_SYS(memfd_create), SCMP_SYS(symlinkat), SCMP_SYS(utimensat),  SCMP_SYS(fsync),
};

static const struct confine_role role = {
    .name = "content",
    .calls = calls,
    .ncalls = ARRAY_LEN(calls),
    .fds_max = 65536,
    .memory_max = (uint64_t)8 << 30,
    .writes_files = true, /* listings, in memory */
    .own_ids = true,
};

/* ---- the user namespace ---- */

static int write_map(pid_t pid, const char *name)
{
  char path[PROC_PATH], text[64];
  snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
  int n = snprintf(text, sizeof(text), "0 %u %u\n", VOLUME_ID_BASE, VOLUME_IDS);
  cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
  return fd < 0 || write(fd, text, (size_t)n) != n ? -errno : 0;
}

/* In the child: waits for the namespace, writes its map, and ends with the errno. */
static void map_child(pid_t parent, const int go[2])
{
  char c;
  close(go[1]); /* else its own end would keep it from hearing that the parent gave up */
  int r = read(go[0], &c, 1) == 1 ? write_map(parent, "uid_map") : -ECANCELED;
  r = r ? r : write_map(parent, "gid_map");
  _exit(-r & 0xff);
}

static int own_ids(struct err *err)
{
  int go[2], status = 0;
  pid_t self = getpid();
  if (pipe2(go, O_CLOEXEC))
    return err_errno(err, "content: pipe");
  pid_t child = fork();
  if (child == 0)
    map_child(self, go);
  close(go[0]);
  int r = child < 0 || unshare(CLONE_NEWUSER) ? err_errno(err, "content: user namespace") : 0;
  if (!r && write(go[1], "g", 1) != 1)
    r = err_errno(err, "content: user namespace");
  close(go[1]);
  if (child > 0 && waitpid(child, &status, 0) == child && !r && status)
    r = err_set(err, -WEXITSTATUS(status), "content: map of user ids: %s", strerrordesc_np(WEXITSTATUS(status)));
  if (!r && (setgroups(0, NULL) || setresgid(0, 0, 0) || setresuid(0, 0, 0)))
    r = err_errno(err, "content: become the root of its user namespace");
  return r;
}

/* ---- capabilities ---- */

static int keep_file_capabilities(struct err *err)
{
  static const unsigned kept[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID};
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {0};
  for (size_t i = 0; i < ARRAY_LEN(kept); i++)
    data[0].permitted |= 1u << kept[i];
  data[0].effective = data[0].permitted;
  for (unsigned c = 0; c <= CAP_LAST_CAP; c++)
    prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return syscall(SYS_capset, &head, data) ? err_errno(err, "content: capabilities") : 0;
}

int content_confine(void (*threads)(void *arg), void *arg, struct err *err)
{
  umask(0);
  int r = own_ids(err);
  r = r ? r : confine_rights(&role, VOLUME_ID_BASE, err);
  r = r ? r : keep_file_capabilities(err);
  if (r)
    return r;
  threads(arg);
  return confine_filter(&role, VOLUME_ID_BASE, err);
}
