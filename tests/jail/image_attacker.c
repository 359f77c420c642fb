/* SPDX-License-Identifier: Apache-2.0 */
/* image_attacker.c - stands where mkfs.erofs would, taken over by what it read: tries everything that its rights might
 * open, and writes one line per attempt, "NAME ok" or "NAME ERRNO", into the image. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static int image;

static void tell(const char *name, long result)
{
  dprintf(image, "%s %s\n", name, result < 0 ? strerrorname_np(errno) : "ok");
}

static void try_names(void)
{
  tell("read_host_file", open("/etc/passwd", O_RDONLY));
  tell("read_proc", open("/proc/1/status", O_RDONLY));
  tell("read_neighbour", open("/layer/../neighbour/secret", O_RDONLY));
  tell("follow_link", open("/layer/link", O_RDONLY));
  tell("write_layer", open("/layer/secret", O_WRONLY));
  tell("create_in_layer", open("/layer/new", O_WRONLY | O_CREAT, 0600));
  tell("write_own_program", open("/mkfs.erofs", O_WRONLY));
  tell("create_in_root", open("/new", O_WRONLY | O_CREAT, 0600));
  tell("open_device", open("/layer/device", O_RDONLY));
}

static void try_kernel(void)
{
  char memory[64] = {0};
  tell("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
  tell("remount_layer", mount(NULL, "/layer", NULL, MS_REMOUNT | MS_BIND, NULL));
  tell("umount", umount2("/layer", MNT_DETACH));
  tell("pivot_root", syscall(SYS_pivot_root, "/", "/tmp"));
  tell("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1));
  tell("fsopen", syscall(SYS_fsopen, "ext4", 0));
  tell("mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, "/layer", 0, memory, 32));
  tell("chroot", chroot("/tmp"));
  tell("unshare_user", unshare(CLONE_NEWUSER));
  tell("unshare_mount", unshare(CLONE_NEWNS));
  tell("setns", setns(image, 0));
  tell("handle", syscall(SYS_name_to_handle_at, AT_FDCWD, "/", memory, memory, 0));
  tell("open_by_handle", syscall(SYS_open_by_handle_at, image, memory, O_RDONLY));
  tell("bpf", syscall(SYS_bpf, 0, memory, sizeof(memory)));
  tell("perf", syscall(SYS_perf_event_open, memory, 0, -1, -1, 0));
  tell("io_uring", syscall(SYS_io_uring_setup, 1, memory));
  tell("keyctl", syscall(SYS_keyctl, 0, 0, 0));
  tell("module", syscall(SYS_init_module, memory, 0, ""));
  tell("swapon", syscall(SYS_swapon, "/image", 0));
  tell("sethostname", sethostname("taken", 5));
  tell("quota", syscall(SYS_quotactl, 0, "/image", 0, NULL));
  tell("fanotify", syscall(SYS_fanotify_init, 0, 0));
  tell("ioctl", syscall(SYS_ioctl, image, 0x5401, memory));
  tell("mknod", mknod("/tmp/sda", S_IFBLK | 0600, makedev(8, 0)));
  tell("chown", chown("/image", 0, 0));
  tell("setxattr", setxattr("/image", "trusted.x", "y", 1, 0));
}

static void try_processes(void)
{
  tell("socket_inet", socket(AF_INET, SOCK_STREAM, 0));
  tell("socket_unix", socket(AF_UNIX, SOCK_STREAM, 0));
  tell("socket_netlink", socket(AF_NETLINK, SOCK_RAW, 0));
  tell("fork", syscall(SYS_fork));
  tell("vfork_like", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  tell("clone3", syscall(SYS_clone3, NULL, 0));
  tell("ptrace", syscall(SYS_ptrace, 16, 2, 0, 0));
  tell("kill", kill(-1, SIGTERM));
  tell("pidfd", syscall(SYS_pidfd_open, 1, 0));
  tell("read_memory", syscall(SYS_process_vm_readv, 2, NULL, 0, NULL, 0, 0));
  tell("setuid", setuid(0));
  tell("prctl", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
  tell("raise_limit", prlimit(0, RLIMIT_AS, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}, NULL));
  tell("memfd", syscall(SYS_memfd_create, "x", 0));
  tell("run_layer", execve("/layer/program", (char *[]){NULL}, (char *[]){NULL}));
}

int main(int argc, char **argv)
{
  char mark[8];
  if (argc < 5 || access("/layer/fail", F_OK) == 0)
    return 7;
  image = open(argv[3], O_WRONLY);
  if (image < 0)
    return 8;
  tell("MAY read_secret", open("/layer/secret", O_RDONLY));
  tell("MAY read_mark", getxattr("/layer/opaque", "trusted.overlay.opaque", mark, sizeof(mark)));
  try_names();
  try_kernel();
  try_processes();
  return 0;
}
