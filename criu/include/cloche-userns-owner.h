/* SPDX-License-Identifier: GPL-2.0-only */
/* cloche-userns-owner.h - what scripts/criu adds to criu: the owner of a box's user namespace.
 *
 * A user namespace belongs to whoever makes it, and limits such as inotify instances are counted per owner all the way
 * up. Boxes are owned by their own root or their zygote's user, restored ones must be too, or all of them would share
 * what the host's root has. So the clone that makes a user namespace happens under the user that the environment names,
 * and makes the control group namespace along with it: one that criu brought would stay the host's root's, and no fork of a
 * zygote could enter it. criu is in the box's groups by then, so the namespace has them for its root, as in a birth.
 * The same user may ask for the limits of the box's processes, which root can't where it lacks CAP_SYS_RESOURCE. */
#ifndef CLOCHE_CRIU_OWNER_H
#define CLOCHE_CRIU_OWNER_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CLOCHE_NEW_CGROUP 0x02000000 /* CLONE_NEWCGROUP */

static inline long cloche_owner(void)
{
  const char *text = getenv("CLOCHE_OWNER");
  return text ? strtol(text, NULL, 10) : 0;
}

/* Raw: of this thread only. A change of user hides /proc/self from it, and a clone would inherit that. */
static inline void cloche_own_as(long uid)
{
  if (syscall(SYS_setresuid, -1, uid, -1))
    _exit(71);
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static inline long cloche_clone3(void *args, size_t size, int owned)
{
  long owner = owned ? cloche_owner() : 0, r;
  int code;
  if (!owner)
    return syscall(SYS_clone3, args, size);
  *(uint64_t *)args |= CLOCHE_NEW_CGROUP; /* the flags come first in clone3's arguments */
  cloche_own_as(owner);
  r = syscall(SYS_clone3, args, size);
  if (r == 0)
    return 0;
  code = errno;
  cloche_own_as(0);
  errno = code;
  return r;
}

static inline long cloche_prlimit(int pid, int which, void *out)
{
  long owner = cloche_owner(), r = syscall(SYS_prlimit64, pid, which, NULL, out);
  if (!r || errno != EPERM || !owner)
    return r;
  cloche_own_as(owner);
  r = syscall(SYS_prlimit64, pid, which, NULL, out);
  cloche_own_as(0);
  return r;
}

#endif
