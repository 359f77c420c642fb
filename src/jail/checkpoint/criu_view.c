/* SPDX-License-Identifier: Apache-2.0 */
/* criu_view.c - see criu_view.h. Both mounts have no place in the host's tree and are gone with their last descriptor.
 */
#include "jail/checkpoint/criu_view.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define HEAD_BYTES 12 /* two magic numbers and the length of the one message */

static int view_tmpfs(void)
{
  cleanup_fd int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
  if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", "16m", 0) || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    return -1;
  return fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

static void put_varint(struct buf *b, uint64_t v)
{
  for (; v >= 128; v >>= 7)
    buf_addc(b, (char)(v | 128));
  buf_addc(b, (char)v);
}

/* uid_map and gid_map, each one extent: first, lower_first, count. */
static void put_maps(struct buf *b, uint32_t base, uint32_t ids)
{
  for (unsigned field = 1; field <= 2; field++) {
    cleanup_buf struct buf extent = BUF_INIT(64);
    const uint32_t values[] = {0, base, ids};
    for (unsigned i = 0; i < ARRAY_LEN(values); i++) {
      put_varint(&extent, (i + 1) << 3);
      put_varint(&extent, values[i]);
    }
    put_varint(b, field << 3 | 2);
    put_varint(b, extent.n);
    buf_adds(b, buf_str(&extent));
  }
}

static void put_names(struct buf *b, const char *hostname)
{
  const char *const names[] = {hostname, "(none)"};
  for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
    put_varint(b, (i + 1) << 3 | 2);
    put_varint(b, strlen(names[i]));
    buf_addz(b, names[i]);
  }
}

/* The old file's magic numbers before a new message. */
static int write_own(int checkpoint, int dir, const char *name, const struct buf *message, struct err *err)
{
  char head[HEAD_BYTES];
  uint32_t n = (uint32_t)message->n;
  cleanup_fd int old = openat(checkpoint, name, O_RDONLY | O_CLOEXEC);
  cleanup_fd int new = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (old < 0 || new < 0 || read(old, head, sizeof(head)) != sizeof(head))
    return err_errno(err, "reading %s of a checkpoint", name);
  memcpy(head + 8, &n, sizeof(n));
  if (fd_write_all(new, head, sizeof(head)) || fd_write_all(new, message->p, message->n))
    return err_errno(err, "writing %s for a restore", name);
  return 0;
}

/* The box's root owns the files. But the first process is its owner's user until its namespace has ids, and criu reads
 * one file before that. Nobody else comes so far: the directory above is root's alone. */
static int view_files(int checkpoint, int userns, struct err *err)
{
  if (fchmod(checkpoint, 0711) || (fchmodat(checkpoint, "timens-0.img", 0644, 0) && errno != ENOENT))
    return err_errno(err, "opening a checkpoint for its box's owner");
  struct mount_attr attr = {
      .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE, .userns_fd = (uint64_t)userns};
  cleanup_fd int fd = open_tree(checkpoint, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)))
    return err_errno(err, "mounting a checkpoint");
  return steal_fd(&fd);
}

static int add_own(int checkpoint, struct criu_view *v, const char *name, const struct buf *message, struct err *err)
{
  if (v->n == CRIU_OWN_MAX || str_copyz(str_of(name), v->covers[v->n].name, sizeof(v->covers[0].name)))
    return err_set(err, -E2BIG, "the checkpoint has more user and host name namespaces than a box");
  v->n++;
  return write_own(checkpoint, v->own, name, message, err);
}

int criu_view_open(int checkpoint, const struct manifest *m, int userns, uint32_t id_base, uint32_t ids,
                   const char *hostname, struct criu_view *out, struct err *err)
{
  out->own = view_tmpfs();
  if (out->own < 0)
    return err_errno(err, "making a directory for a restore");
  out->files = view_files(checkpoint, userns, err);
  int r = MIN(out->files, 0);
  for (size_t i = 0; i < m->entries.n && !r; i++) {
    const char *name = m->entries.p[i].name;
    cleanup_buf struct buf b = BUF_INIT(4096);
    if (str_starts(str_of(name), STR("userns-")))
      put_maps(&b, id_base, ids);
    else if (str_starts(str_of(name), STR("utsns-")))
      put_names(&b, hostname);
    if (b.n)
      r = add_own(checkpoint, out, name, &b, err);
  }
  return r;
}

void criu_view_close(struct criu_view *v)
{
  if (v->files >= 0)
    close(v->files);
  if (v->own >= 0)
    close(v->own);
  *v = CRIU_VIEW_NONE;
}
