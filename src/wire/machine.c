/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - see machine.h. */
#include "wire/machine.h"

#include <sys/utsname.h>

/* One value of /proc/cpuinfo, which every core repeats. */
static void cpu_word(struct str text, const char *name, char *out, size_t size)
{
  struct str line, key, value;
  while (text.n) {
    str_cut(text, '\n', &line, &text);
    if (!str_cut(line, ':', &key, &value) || !str_is(str_trim(key), name))
      continue;
    str_copyz(str_sub(str_trim(value), 0, size - 1), out, size);
    return;
  }
}

void machine_read(struct machine *m)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  struct utsname u = {0};
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  *m = (struct machine){.cpus = cpus > 0 ? (unsigned)cpus : 1};
  file_read("/proc/cpuinfo", &b);
  cpu_word(buf_str(&b), "cpu family", m->family, sizeof(m->family));
  cpu_word(buf_str(&b), "model", m->model, sizeof(m->model));
  cpu_word(buf_str(&b), "model name", m->model_name, sizeof(m->model_name));
  if (uname(&u))
    return;
  str_copyz(str_sub(str_of(u.nodename), 0, sizeof(m->host) - 1), m->host, sizeof(m->host));
  str_copyz(str_sub(str_of(u.machine), 0, sizeof(m->architecture) - 1), m->architecture, sizeof(m->architecture));
}
