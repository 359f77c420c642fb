/* turns.c - see turns.h.
 *
 * Who only ever runs for some microseconds asks for short turns: the scheduler lets the one whose turn would end first go
 * first, so a process that just woke up passes those that compute, and costs them nothing they would notice. The same holds for
 * the control group it is in. */
#include "base/base.h"

#include "base/turns.h"
#include <sys/syscall.h>
#include <unistd.h>

#define RESET_ON_FORK 1
#define PROMPT_NS     100000 /* the shortest the kernel takes */

/* The fields that every version of the call has; libraries differ in whether they declare the type. */
struct schedule {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

int turns_set(pid_t pid, int nice, bool prompt)
{
  struct schedule s = {.size = sizeof(s), .flags = nice || prompt ? RESET_ON_FORK : 0, .nice = nice, .runtime = prompt ? PROMPT_NS : 0};
  return syscall(SYS_sched_setattr, pid, &s, 0) ? -errno : 0;
}
