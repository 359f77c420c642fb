/* SPDX-License-Identifier: Apache-2.0 */
/* layer_owner.c - see layer_owner.h. */
#include "warden/db/layer_owner.h"

#include "wire/sizes.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#define LINE_MAX_ 100

int layer_owner_write(const char *dir, const char *team, uint64_t bytes, struct err *err)
{
  char path[DATA_PATH_SIZE], line[LINE_MAX_];
  if (!team[0])
    return 0;
  int n = snprintf(line, sizeof(line), "%.39s %" PRIu64 "\n", team, bytes);
  snprintf(path, sizeof(path), "%s/" LAYER_OWNER, dir);
  int r = file_write_atomic(path, line, (size_t)n, 0600);
  return r ? err_set(err, r, "writing %s: %s", path, strerrordesc_np(-r)) : 0;
}

void layer_owner_read(int layers, const char *key, char team[UUID_SIZE], uint64_t *bytes)
{
  char path[300];
  struct str name, number;
  cleanup_buf struct buf b = BUF_INIT(LINE_MAX_);
  *bytes = 0;
  team[0] = 0;
  if ((size_t)snprintf(path, sizeof(path), "%s/" LAYER_OWNER, key) >= sizeof(path))
    return;
  cleanup_fd int fd = openat(layers, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fd_read_all(fd, &b))
    return;
  str_cut(str_trim(buf_str(&b)), ' ', &name, &number);
  if (str_copyz(name, team, 40) || str_u64(number, bytes))
    *bytes = 0;
}
