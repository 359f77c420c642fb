/* SPDX-License-Identifier: Apache-2.0 */
/* mount_attempts.c - by way of files, mounts and devices. */
#include "attempts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

static const char *room(void)
{
  static const char path[] = "/tmp/room";
  mkdir(path, 0755);
  return path;
}

static struct verdict mount_proc_anew(void)
{
  return refused(mount("proc", room(), "proc", 0, NULL));
}
static struct verdict mount_sysfs_writable(void)
{
  return refused(mount("sysfs", room(), "sysfs", 0, NULL));
}
static struct verdict mount_cgroup_v1(void)
{
  return refused(mount("cgroup", room(), "cgroup", 0, "memory"));
}
static struct verdict mount_cgroup_v2(void)
{
  return refused(mount("cgroup2", room(), "cgroup2", 0, NULL));
}
static struct verdict mount_devtmpfs(void)
{
  return refused(mount("devtmpfs", room(), "devtmpfs", 0, NULL));
}
static struct verdict mount_debugfs(void)
{
  return refused(mount("debugfs", room(), "debugfs", 0, NULL));
}
static struct verdict mount_tmpfs(void)
{
  return refused(mount("tmpfs", room(), "tmpfs", 0, NULL));
}
static struct verdict mount_overlay_over_root(void)
{
  return refused(mount("overlay", room(), "overlay", 0, "lowerdir=/etc:/home"));
}
static struct verdict bind_mount_of_proc(void)
{
  return refused(mount("/proc", room(), NULL, MS_BIND | MS_REC, NULL));
}
static struct verdict uncover_proc_kallsyms(void)
{
  return refused(umount2("/proc/kallsyms", MNT_DETACH));
}
static struct verdict uncover_sys_firmware(void)
{
  return refused(umount2("/sys/firmware", MNT_DETACH));
}
static struct verdict remount_proc_sys_writable(void)
{
  return refused(mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL));
}
static struct verdict remount_sysfs_writable(void)
{
  return refused(mount(NULL, "/sys", NULL, MS_REMOUNT, NULL));
}
static struct verdict remount_root_with_devices(void)
{
  return refused(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
}
static struct verdict make_root_shared(void)
{
  return refused(mount(NULL, "/", NULL, MS_SHARED | MS_REC, NULL));
}
static struct verdict new_mount_api_fsopen(void)
{
  return refused(fsopen("tmpfs", 0));
}
static struct verdict new_mount_api_open_tree(void)
{
  return refused(open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE));
}
static struct verdict new_mount_api_setattr(void)
{
  struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};
  return refused(mount_setattr(AT_FDCWD, "/sys", 0, &attr, sizeof(attr)));
}
static struct verdict new_mount_api_move(void)
{
  return refused(move_mount(AT_FDCWD, "/proc", AT_FDCWD, room(), 0));
}
static struct verdict pivot_root_back(void)
{
  return refused(syscall(SYS_pivot_root, "/", room()));
}

/* The host's file must not be there however far up one goes. */
static struct verdict sees_host_file(const char *prefix)
{
  char path[512];
  struct stat st;
  snprintf(path, sizeof(path), "%s%s", prefix, facts.file);
  return stat(path, &st) == 0 ? escaped("found %s", path) : held("%s", strerrorname_np(errno));
}
static struct verdict climb_by_dots(void)
{
  return sees_host_file("/../../../../../../../../../../..");
}
/* The oldest way out: a chroot below a kept directory, then up. It leads to the root of the mount namespace, which is
 * the box's own. */
static struct verdict climb_out_of_chroot(void)
{
  char up[128] = "";
  int fd = open("/", O_RDONLY | O_DIRECTORY);
  if (fd < 0 || chroot(room()))
    return refused(-1);
  if (fchdir(fd))
    return escaped("could not keep a directory");
  for (int i = 0; i < 20; i++)
    strncat(up, "../", sizeof(up) - strlen(up) - 1);
  if (chdir(up) || chroot("."))
    return escaped("lost on the way up");
  return sees_host_file("");
}
static struct verdict follow_proc_1_root(void)
{
  return sees_host_file("/proc/1/root");
}
static struct verdict follow_proc_1_cwd(void)
{
  return sees_host_file("/proc/1/cwd/../../../../..");
}
static struct verdict follow_a_symlink_to_the_host(void)
{
  unlink("/tmp/link");
  if (symlink(facts.file, "/tmp/link"))
    return refused(-1);
  return try_read("/tmp/link");
}
/* Handles name inodes without a path; inode 2 is the root of an ext4. */
static struct verdict open_root_by_handle(void)
{
  struct {
    struct file_handle h;
    unsigned id[2];
  } f = {.h = {.handle_bytes = 8, .handle_type = 1}, .id = {2, 0}};
  int mount = open("/", O_RDONLY | O_DIRECTORY);
  return refused(open_by_handle_at(mount, &f.h, O_RDONLY));
}
static struct verdict node(const char *path, mode_t type, unsigned major_, unsigned minor_)
{
  unlink(path);
  return refused(mknod(path, type | 0600, makedev(major_, minor_)));
}
static struct verdict make_disk_node(void)
{
  return node("/tmp/disk", S_IFBLK, 254, 0);
}
static struct verdict make_mem_node(void)
{
  return node("/tmp/mem", S_IFCHR, 1, 1);
}
static struct verdict make_kmsg_node_in_shm(void)
{
  return node("/dev/shm/kmsg", S_IFCHR, 1, 11);
}
static struct verdict make_fuse_node_in_dev(void)
{
  return node("/dev/fuse", S_IFCHR, 10, 229);
}
/* The template holds these two: made by the host's root, owned by the box's. */
static struct verdict open_a_disk_node_of_the_template(void)
{
  return refused(open("/srv/disk", O_RDWR));
}
static struct verdict open_a_null_node_of_the_template(void)
{
  return refused(open("/srv/null", O_RDWR));
}
static struct verdict open_dev_mem(void)
{
  return refused(open("/dev/mem", O_RDWR));
}
static struct verdict open_dev_kmsg(void)
{
  return refused(open("/dev/kmsg", O_RDWR));
}
static struct verdict open_dev_kvm(void)
{
  return refused(open("/dev/kvm", O_RDWR));
}
static struct verdict open_loop_control(void)
{
  return refused(open("/dev/loop-control", O_RDWR));
}
static struct verdict forge_an_overlay_redirect(void)
{
  return refused(setxattr("/tmp", "trusted.overlay.redirect", "/../..", 6, 0));
}
static struct verdict forge_an_overlay_whiteout(void)
{
  return refused(setxattr("/tmp", "trusted.overlay.opaque", "y", 1, 0));
}
/* Overwriting the program that runs as pid 1 reaches only the box's own copy of it, if anything. */
static struct verdict overwrite_the_running_program(void)
{
  int fd = open("/proc/1/exe", O_WRONLY);
  if (fd < 0)
    return refused(-1);
  return escaped("the running program is open for writing");
}
static struct verdict write_into_a_lower_layer(void)
{
  int fd = open("/etc/note", O_WRONLY | O_TRUNC);
  if (fd < 0 || write(fd, "owned", 5) != 5)
    return escaped("the box can't write its own file");
  return held("copied up; the test looks at the layer");
}

const struct attempt mount_attempts[] = {
    ATTEMPT(mount_proc_anew),
    ATTEMPT(mount_sysfs_writable),
    ATTEMPT(mount_cgroup_v1),
    ATTEMPT(mount_cgroup_v2),
    ATTEMPT(mount_devtmpfs),
    ATTEMPT(mount_debugfs),
    ATTEMPT(mount_tmpfs),
    ATTEMPT(mount_overlay_over_root),
    ATTEMPT(bind_mount_of_proc),
    ATTEMPT(uncover_proc_kallsyms),
    ATTEMPT(uncover_sys_firmware),
    ATTEMPT(remount_proc_sys_writable),
    ATTEMPT(remount_sysfs_writable),
    ATTEMPT(remount_root_with_devices),
    ATTEMPT(make_root_shared),
    ATTEMPT(new_mount_api_fsopen),
    ATTEMPT(new_mount_api_open_tree),
    ATTEMPT(new_mount_api_setattr),
    ATTEMPT(new_mount_api_move),
    ATTEMPT(pivot_root_back),
    ATTEMPT(climb_by_dots),
    ATTEMPT(climb_out_of_chroot),
    ATTEMPT(follow_proc_1_root),
    ATTEMPT(follow_proc_1_cwd),
    ATTEMPT(follow_a_symlink_to_the_host),
    ATTEMPT(open_root_by_handle),
    ATTEMPT(make_disk_node),
    ATTEMPT(make_mem_node),
    ATTEMPT(make_kmsg_node_in_shm),
    ATTEMPT(make_fuse_node_in_dev),
    ATTEMPT(open_a_disk_node_of_the_template),
    ATTEMPT(open_a_null_node_of_the_template),
    ATTEMPT(open_dev_mem),
    ATTEMPT(open_dev_kmsg),
    ATTEMPT(open_dev_kvm),
    ATTEMPT(open_loop_control),
    ATTEMPT(forge_an_overlay_redirect),
    ATTEMPT(forge_an_overlay_whiteout),
    ATTEMPT(overwrite_the_running_program),
    ATTEMPT(write_into_a_lower_layer),
    {NULL, NULL},
};
