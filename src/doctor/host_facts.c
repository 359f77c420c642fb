/* SPDX-License-Identifier: Apache-2.0 */
/* host_facts.c - see host_facts.h. */
#include "doctor/host_facts.h"

#include "jail/cgroup.h"
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <sys/statfs.h>
#include <sys/utsname.h>

#define XFS_MAGIC  0x58465342u
#define ZFS_MAGIC  0x2fc12fc1u
#define BCACHEFS   0xca451a4eu
#define CIFS_MAGIC 0xff534d42u

const char *host_filesystem_name(uint64_t type)
{
  static const struct {
    uint64_t type;
    const char *name;
  } known[] = {
      {EXT4_SUPER_MAGIC, "ext4"},
      {XFS_MAGIC, "xfs"},
      {BTRFS_SUPER_MAGIC, "btrfs"},
      {TMPFS_MAGIC, "tmpfs"},
      {OVERLAYFS_SUPER_MAGIC, "overlay"},
      {NFS_SUPER_MAGIC, "nfs"},
      {F2FS_SUPER_MAGIC, "f2fs"},
      {FUSE_SUPER_MAGIC, "fuse"},
      {ZFS_MAGIC, "zfs"},
      {BCACHEFS, "bcachefs"},
      {CIFS_MAGIC, "cifs"},
      {V9FS_MAGIC, "9p"},
      {SQUASHFS_MAGIC, "squashfs"},
      {RAMFS_MAGIC, "ramfs"},
  };
  for (size_t i = 0; i < ARRAY_LEN(known); i++)
    if (known[i].type == type)
      return known[i].name;
  return "";
}

/* The number behind "key:" in /proc/meminfo, in bytes. */
static uint64_t meminfo(struct str text, const char *key)
{
  struct str line, name, value, digits;
  uint64_t kib = 0;
  while (text.n > 0) {
    str_cut(text, '\n', &line, &text);
    if (!str_cut(line, ':', &name, &value) || !str_is(name, key))
      continue;
    str_cut(str_trim(value), ' ', &digits, &value);
    return str_u64(digits, &kib) ? 0 : kib << 10;
  }
  return 0;
}

static void read_system(char *out, size_t size)
{
  cleanup_buf struct buf b = BUF_INIT(8192);
  struct str text, line, key, value;
  if (file_read("/etc/os-release", &b))
    return;
  for (text = buf_str(&b); text.n > 0;) {
    str_cut(text, '\n', &line, &text);
    if (!str_cut(line, '=', &key, &value) || !str_is(key, "PRETTY_NAME"))
      continue;
    if (value.n >= 2 && value.p[0] == '"')
      value = str_sub(value, 1, value.n - 2);
    snprintf(out, size, STR_FMT, STR_ARG(str_sub(value, 0, MIN(value.n, size - 1))));
  }
}

static const char *cgroups_of(void)
{
  const struct cgroup_ops *ops = cgroup_host();
  if (!ops)
    return "none";
  if (ops == &cgroup_v2)
    return "v2";
  return access("/sys/fs/cgroup/unified/cgroup.controllers", F_OK) == 0 ? "hybrid" : "v1";
}

static void read_disk(const char *data, struct doctor_host *out)
{
  struct statfs fs;
  if (statfs(data, &fs))
    return;
  const char *name = host_filesystem_name((uint64_t)fs.f_type & UINT32_MAX);
  if (name[0])
    snprintf(out->filesystem, sizeof(out->filesystem), "%s", name);
  else
    snprintf(out->filesystem, sizeof(out->filesystem), "0x%llx", (unsigned long long)fs.f_type & UINT32_MAX);
  out->disk = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
  out->disk_available = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
  out->inodes = fs.f_files;
  out->inodes_available = fs.f_ffree;
}

void host_facts(const char *data, struct doctor_host *out)
{
  struct utsname u;
  cpu_set_t set;
  cleanup_buf struct buf b = BUF_INIT(16384);
  uname(&u);
  snprintf(out->kernel, sizeof(out->kernel), "%s", u.release);
  snprintf(out->architecture, sizeof(out->architecture), "%.*s", (int)sizeof(out->architecture) - 1, u.machine);
  read_system(out->system, sizeof(out->system));
  out->cpus = sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
  if (!file_read("/proc/meminfo", &b)) {
    out->memory = meminfo(buf_str(&b), "MemTotal");
    out->memory_available = meminfo(buf_str(&b), "MemAvailable");
  }
  out->cgroups = cgroups_of();
  read_disk(data, out);
}

static uint64_t read_number(const char *path)
{
  cleanup_buf struct buf b = BUF_INIT(64);
  uint64_t n = 0;
  return file_read(path, &b) || str_u64(str_trim(buf_str(&b)), &n) ? 0 : n;
}

uint64_t host_processes_left(void)
{
  cleanup_buf struct buf b = BUF_INIT(128);
  uint64_t most = MIN(read_number("/proc/sys/kernel/pid_max"), read_number("/proc/sys/kernel/threads-max")), now = 0;
  struct str rest, field, total = STR("");
  if (!file_read("/proc/loadavg", &b)) { /* "0.1 0.2 0.3 running/all last" */
    rest = buf_str(&b);
    for (int i = 0; i < 4; i++)
      str_cut(rest, ' ', &field, &rest);
    str_cut(field, '/', &rest, &total);
    str_u64(total, &now);
  }
  return most - MIN(most, now);
}
