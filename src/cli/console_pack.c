/* SPDX-License-Identifier: Apache-2.0 */
/* console_pack.c - see console_pack.h. */
#include "cli/console_pack.h"

#include "wire/file_pack.h"
#include <fcntl.h>
#include <sys/mman.h>

static int seal(struct str bytes, struct err *err)
{
  cleanup_fd int fd = memfd_create("cloche-console", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    return err_errno(err, "memory for the console");
  int r = fd_write_all(fd, bytes.p, bytes.n);
  if (r || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
    return err_set(err, r ? r : -errno, "memory for the console can't be written");
  return steal_fd(&fd);
}

bool console_pack_open(const char *setting, int *fd)
{
  cleanup_buf struct buf b = BUF_INIT(2 * FILE_PACK_MAX);
  struct err err = ERR_NONE;
  *fd = -1;
  if (!strcmp(setting, "off"))
    return false;
  if (access(setting, F_OK)) {
    log_info("no web console at %s: built without it", setting);
    return true;
  }
  int r = file_pack_read_dir(setting, &b, &err);
  if (!r && (*fd = seal(buf_str(&b), &err)) >= 0)
    return true;
  log_error("the web console is not served: %s", err.msg);
  *fd = -1;
  return true;
}
