/* SPDX-License-Identifier: Apache-2.0 */
/* older_kernel PROGRAM ARGUMENT... - runs a program, and all it starts, as on a kernel before 6.16: setting or reading
 * SO_PASSRIGHTS fails as an option that is not known. Needs root. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PASSRIGHTS  83
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

int main(int argc, char **argv)
{
  struct sock_filter code[] = {
      LOAD(nr),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 5),
      LOAD(args[1]),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 0, 3),
      LOAD(args[2]),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PASSRIGHTS, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
  if (argc < 2 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
    perror("older_kernel");
    return 1;
  }
  execv(argv[1], argv + 1);
  perror(argv[1]);
  return 1;
}
