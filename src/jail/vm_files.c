/* SPDX-License-Identifier: Apache-2.0 */
/* vm_files.c - see vm_files.h. Files are opened here and handed over; QEMU could open none of them. The scratch image
 * is the guest's from its first write on: nothing on this side ever mounts or reads it. */
#include "jail/vm_files.h"
#include "jail/fs/disk_image.h"
#include "jail/fs/layer_image.h"
#include "jail/jail_internal.h"
#include "jail/net/jail_net.h"
#include "jail/net/tap.h"
#include "jail/vm/vm_argv.h"
#include "wire/guest_frame.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

_Static_assert(CHILD_GIVEN >= VM_LAYER_FD - 3 + GUEST_LAYER_MAX, "room for every layer");
#define VM_USER   1000                 /* as in jail_child.c */
#define VM_STATE  ((uint64_t)16 << 20) /* of devices, beside the memory */
#define KVM_MAJOR 10
#define KVM_MINOR 232

void vm_files_close(struct vm_files *f)
{
  while (f->n > 0)
    close(f->fds[--f->n]);
  if (f->root >= 0)
    close(f->root);
  if (f->devices >= 0)
    close(f->devices);
  arena_free(&f->arena);
}

static int keep(struct vm_files *f, int fd)
{
  if (fd >= 0)
    f->fds[f->n++] = fd;
  return MIN(fd, 0);
}

static int open_root(const char *parts, int *out, struct err *err)
{
  char path[PATH_MAX];
  const struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                                  .propagation = MS_PRIVATE};
  snprintf(path, sizeof(path), "%s/root", parts);
  cleanup_fd int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, (struct mount_attr *)&attr, sizeof(attr)))
    return err_errno(err, "mounting %s", path);
  *out = steal_fd(&tree);
  return 0;
}

/* The one device, for the one user; QEMU opens it by name. */
static int make_devices(uint32_t id_base, int *out, struct err *err)
{
  cleanup_fd int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
  if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", "4096", 0) ||
      fsconfig(fs, FSCONFIG_SET_STRING, "mode", "755", 0) || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    return err_errno(err, "making a tmpfs");
  cleanup_fd int tree = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  if (tree < 0 || mknodat(tree, "kvm", S_IFCHR | 0600, makedev(KVM_MAJOR, KVM_MINOR)) ||
      fchownat(tree, "kvm", id_base + VM_USER, id_base + VM_USER, AT_SYMLINK_NOFOLLOW))
    return err_errno(err, "making /dev/kvm for a guest");
  *out = steal_fd(&tree);
  return 0;
}

static int open_tap(const struct jail_spec *spec, pid_t pid, struct err *err)
{
  cleanup_fd int netns = jail_open_ns(pid, "net", err);
  return netns < 0 ? netns : tap_open(netns, spec->vm->address, err);
}

static int open_scratch(const struct jail_spec *spec, struct err *err)
{
  char image[PATH_MAX], boxes[PATH_MAX];
  if ((size_t)snprintf(image, sizeof(image), "%s/" DISK_IMAGE_NAME, spec->dir) >= sizeof(image) ||
      str_copyz(path_dir(str_of(spec->dir)), boxes, sizeof(boxes)))
    return err_set(err, -ENAMETOOLONG, "path too long: %s", spec->dir);
  if (mkdir(spec->dir, 0700) && errno != EEXIST)
    return err_errno(err, "making %s", spec->dir);
  int r = access(image, F_OK) ? disk_image_make(boxes, image, &spec->limits, err) : 0;
  int fd = r ? r : open(image, O_RDWR | O_CLOEXEC);
  return r ? r : fd < 0 ? err_errno(err, "opening %s", image) : fd;
}

/* The disk keeps its size. A memory file or a saved state may be as large as the guest's memory. */
static int limit_files(int scratch, uint64_t memory, uint64_t *out, struct err *err)
{
  struct stat st;
  if (fstat(scratch, &st))
    return err_errno(err, "looking at a guest's disk");
  *out = MAX((uint64_t)st.st_size, memory + VM_STATE);
  return 0;
}

static int open_layers(const struct jail_spec *spec, struct vm_files *f, unsigned *layers, struct err *err)
{
  int r = 0;
  for (*layers = 0; !r && spec->lowers[*layers]; ++*layers) {
    if (*layers == GUEST_LAYER_MAX)
      return err_set(err, -E2BIG, "a template of more than %d layers can't be run with isolation microvm",
                     GUEST_LAYER_MAX);
    r = keep(f, layer_image_open(spec->vm->parts, spec->lowers[*layers], err));
  }
  return r;
}

/* As make_root in jail_spawn.c has it. */
static const char *nameserver(const struct jail_spec *spec, char text[INET_ADDRSTRLEN])
{
  if (spec->nameserver || !spec->net)
    return spec->nameserver;
  struct in_addr gateway = {htonl(jail_net_gateway(spec->net->config))};
  return inet_ntop(AF_INET, &gateway, text, INET_ADDRSTRLEN);
}

int vm_files_open(const struct jail_spec *spec, pid_t pid, struct vm_files *f, struct err *err)
{
  const struct jail_vm *vm = spec->vm;
  struct vm_machine m = {
      .accel = vm->emulated ? VM_EMULATION : VM_KVM, .cpus = MAX(vm->cpus, 1u), .memory_mb = vm->memory >> 20};
  char text[INET_ADDRSTRLEN];
  int r = vm_parts_check(vm->parts, err);
  if (!r && (spec->volumes_n || spec->cache))
    r = err_set(err, -EINVAL, "box %s: volumes and caches can't be given to a guest", spec->id);
  r = r ? r : open_root(vm->parts, &f->root, err);
  r = r || vm->emulated ? r : make_devices(spec->id_base, &f->devices, err);
  if (!r && (r = keep(f, open("/dev/null", O_RDWR | O_CLOEXEC))))
    err_errno(err, "opening /dev/null");
  r = r ? r : keep(f, open_tap(spec, pid, err));
  r = r ? r : keep(f, open_scratch(spec, err));
  r = r ? r : limit_files(f->fds[f->n - 1], vm->memory, &f->file_bytes, err);
  r = r ? r : open_layers(spec, f, &m.layers, err);
  if (r)
    return r;
  f->argv = vm_argv(&f->arena, &m);
  f->env = vm_env(&f->arena, spec->env, &m, spec->hostname, vm->address, nameserver(spec, text));
  return 0;
}
