/* SPDX-License-Identifier: Apache-2.0 */
/* host_memory.c - see host_memory.h. */
#include "warden/core/host_memory.h"

int host_memory(uint64_t *total, uint64_t *available)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  int r = file_read("/proc/meminfo", &b);
  struct str rest = buf_str(&b), line, name, value;
  *total = *available = 0;
  while (!r && rest.n) {
    uint64_t kib = 0;
    str_cut(rest, '\n', &line, &rest);
    str_cut(line, ':', &name, &value);
    value = str_trim(value);
    str_cut(value, ' ', &value, &line);
    if (str_is(name, "MemTotal") && !str_u64(value, &kib))
      *total = kib << 10;
    else if (str_is(name, "MemAvailable") && !str_u64(value, &kib))
      *available = kib << 10;
  }
  return r ? r : *total ? 0 : -EINVAL;
}
