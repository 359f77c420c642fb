/* SPDX-License-Identifier: Apache-2.0 */
/* box_metrics.c - numbers of this box, not of its host.
 *
 * Where the warden has set the limits (CLOCHE_MEMORY bytes, CLOCHE_CPUS), /proc/meminfo and /proc/stat are about the
 * whole machine and are of no use. Then memory and cpu come from the box's own cgroup when it is mounted in here, else
 * from the processes of the box: pid 1 sees all of them, and what a dead one used has gone to its parent. */
#include "agent/envd/box_metrics.h"
#include "agent/envd/http_reply.h"
#include <ctype.h>
#include <dirent.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PROC_FILE_MAX ((size_t)64 << 10)

struct cpu_mark {
  uint64_t busy, total; /* same unit for both */
};

static struct {
  uint64_t memory_limit; /* 0 = unknown */
  unsigned cpus;
  struct cpu_mark last;
} metrics;

struct memory {
  uint64_t total, used, cache;
};

static uint64_t env_number(const char *name)
{
  uint64_t v = 0;
  const char *text = getenv(name);
  return text && str_u64(str_of(text), &v) == 0 ? v : 0;
}

static int number_file(const char *path, uint64_t *out)
{
  cleanup_buf struct buf text = BUF_INIT(256);
  if (file_read(path, &text) < 0)
    return -ENOENT;
  return str_u64(str_trim(buf_str(&text)), out);
}

/* The number after `key` in a file of "key value" lines; `key:` and units are understood. */
static uint64_t keyed_number(struct str text, const char *key)
{
  struct str line;
  while (text.n) {
    struct str all = text, name, rest;
    str_cut(all, '\n', &line, &text);
    str_cut(line, ' ', &name, &rest);
    if (name.n && name.p[name.n - 1] == ':')
      name.n--;
    if (!str_is(name, key))
      continue;
    uint64_t v = 0;
    rest = str_trim(rest);
    str_cut(rest, ' ', &name, &rest);
    return str_u64(name, &v) == 0 ? v : 0;
  }
  return 0;
}

/* ---- the processes of the box ---- */

struct tally {
  uint64_t ticks, bytes;
  unsigned count;
};

#define EXACT_MAX 64 /* processes whose memory is measured by share; the walk of their maps takes its time */

/* Field n (from 3 on) of /proc/PID/stat; the name in field 2 may hold anything, so counting starts behind its last ')'.
 */
static uint64_t stat_field(struct str text, int field)
{
  ptrdiff_t close = str_rfind(text, ')');
  struct str rest = close < 0 ? STR_NONE : str_skip(text, (size_t)close + 2), token = STR_NONE;
  for (int i = 3; i <= field; i++) {
    struct str all = rest;
    str_cut(all, ' ', &token, &rest);
  }
  int64_t v = 0;
  return str_i64(token, &v) == 0 && v > 0 ? (uint64_t)v : 0;
}

/* Pages that several processes share count by share, else each of them would count as its own. */
static uint64_t memory_share(const char *pid)
{
  cleanup_free char *path = xasprintf("/proc/%s/smaps_rollup", pid);
  cleanup_buf struct buf text = BUF_INIT(PROC_FILE_MAX);
  return file_read(path, &text) == 0 ? keyed_number(buf_str(&text), "Pss") << 10 : 0;
}

static uint64_t memory_resident(const char *pid)
{
  cleanup_free char *path = xasprintf("/proc/%s/statm", pid);
  cleanup_buf struct buf text = BUF_INIT(PROC_FILE_MAX);
  uint64_t pages = 0;
  struct str size, rest, token;
  if (file_read(path, &text) < 0)
    return 0;
  str_cut(buf_str(&text), ' ', &size, &rest);
  str_cut(rest, ' ', &token, &size);
  str_u64(token, &pages);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void tally_one(const char *pid, struct tally *t)
{
  cleanup_free char *path = xasprintf("/proc/%s/stat", pid);
  cleanup_buf struct buf text = BUF_INIT(PROC_FILE_MAX);
  if (file_read(path, &text) == 0)
    for (int field = 14; field <= 17; field++) /* own and waited-for children's time, user and system */
      t->ticks += stat_field(buf_str(&text), field);
  uint64_t bytes = t->count++ < EXACT_MAX ? memory_share(pid) : 0;
  t->bytes += bytes ? bytes : memory_resident(pid);
}

static struct tally tally_all(void)
{
  struct tally t = {0};
  DIR *dir = opendir("/proc");
  if (!dir)
    return t;
  for (struct dirent *e; (e = readdir(dir));)
    if (isdigit((unsigned char)e->d_name[0]))
      tally_one(e->d_name, &t);
  closedir(dir);
  return t;
}

/* ---- memory ---- */

static struct memory memory_machine(void)
{
  cleanup_buf struct buf text = BUF_INIT(PROC_FILE_MAX);
  file_read("/proc/meminfo", &text);
  struct str all = buf_str(&text);
  uint64_t total = keyed_number(all, "MemTotal"), available = keyed_number(all, "MemAvailable");
  uint64_t cache = keyed_number(all, "Cached") + keyed_number(all, "SReclaimable");
  uint64_t used = available < total ? total - available : 0;
  return (struct memory){total << 10, used << 10, cache << 10};
}

static bool memory_cgroup(struct memory *m)
{
  cleanup_buf struct buf text = BUF_INIT(PROC_FILE_MAX);
  uint64_t used;
  bool v2 = number_file("/sys/fs/cgroup/memory.current", &used) == 0;
  if (!v2 && number_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", &used) < 0)
    return false;
  file_read(v2 ? "/sys/fs/cgroup/memory.stat" : "/sys/fs/cgroup/memory/memory.stat", &text);
  uint64_t inactive = keyed_number(buf_str(&text), v2 ? "inactive_file" : "total_inactive_file");
  m->cache = keyed_number(buf_str(&text), v2 ? "file" : "total_cache");
  m->used = used - MIN(inactive, used);
  return true;
}

static struct memory memory_now(const struct tally *t)
{
  if (!metrics.memory_limit)
    return memory_machine();
  struct memory m = {.total = metrics.memory_limit};
  if (!memory_cgroup(&m))
    m.used = t->bytes;
  m.used = MIN(m.used, m.total);
  return m;
}

/* ---- cpu ---- */

static struct cpu_mark cpu_machine(void)
{
  cleanup_buf struct buf text = BUF_INIT((size_t)1 << 20);
  file_read("/proc/stat", &text);
  struct str line, rest, token;
  str_cut(buf_str(&text), '\n', &line, &rest);
  line = str_trim(str_skip(line, 3));
  uint64_t v[8] = {0}, total = 0; /* user nice system idle iowait irq softirq steal; guest is inside user */
  for (size_t i = 0; i < ARRAY_LEN(v); i++) {
    struct str all = line;
    str_cut(all, ' ', &token, &line);
    str_u64(token, &v[i]);
    total += v[i];
  }
  return (struct cpu_mark){total - v[3] - v[4], total};
}

static struct cpu_mark cpu_box(const struct tally *t)
{
  uint64_t ns;
  cleanup_buf struct buf text = BUF_INIT(PROC_FILE_MAX);
  struct cpu_mark mark = {.total = (uint64_t)clock_mono_us() * metrics.cpus};
  if (file_read("/sys/fs/cgroup/cpu.stat", &text) == 0 && text.n)
    mark.busy = keyed_number(buf_str(&text), "usage_usec");
  else if (number_file("/sys/fs/cgroup/cpuacct/cpuacct.usage", &ns) == 0)
    mark.busy = ns / 1000;
  else
    mark.busy = t->ticks * (1000000 / (uint64_t)sysconf(_SC_CLK_TCK));
  return mark;
}

static struct cpu_mark cpu_now(const struct tally *t)
{
  return metrics.memory_limit ? cpu_box(t) : cpu_machine();
}

static double cpu_percent(struct cpu_mark now)
{
  struct cpu_mark was = metrics.last;
  metrics.last = now;
  if (now.total <= was.total || now.busy <= was.busy)
    return 0;
  double percent = 100.0 * (double)(now.busy - was.busy) / (double)(now.total - was.total);
  return MIN(percent, 100.0);
}

void metrics_start(void)
{
  metrics.memory_limit = env_number("CLOCHE_MEMORY");
  metrics.cpus = (unsigned)env_number("CLOCHE_CPUS");
  if (!metrics.cpus)
    metrics.cpus = (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
  if (metrics.memory_limit)
    metrics.last.total = (uint64_t)clock_mono_us() * metrics.cpus;
  else
    metrics.last = cpu_machine();
}

void metrics_request(struct http_x *x, struct agent *a UNUSED)
{
  struct tally t = {0};
  struct statvfs fs = {0};
  cleanup_buf struct buf body = BUF_INIT(4096);
  if (metrics.memory_limit)
    t = tally_all();
  struct memory m = memory_now(&t);
  double cpu = cpu_percent(cpu_now(&t));
  statvfs("/", &fs);
  uint64_t total = (uint64_t)fs.f_blocks * fs.f_frsize, available = (uint64_t)fs.f_bavail * fs.f_frsize;
  struct jw w = JW(&body);
  jw_open(&w, '{');
  const struct {
    const char *key;
    uint64_t value;
  } rows[] = {
      {"ts", (uint64_t)(clock_wall_us() / 1000000)},
      {"cpu_count", metrics.cpus},
      {"mem_total", m.total},
      {"mem_used", m.used},
      {"mem_cache", m.cache},
      {"mem_total_mib", m.total >> 20},
      {"mem_used_mib", m.used >> 20},
      {"disk_total", total},
      {"disk_used", available < total ? total - available : 0},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    jw_key(&w, rows[i].key);
    jw_uint(&w, rows[i].value);
  }
  jw_key(&w, "cpu_used_pct");
  jw_double(&w, cpu, 6);
  jw_close(&w, '}');
  http_x_handle(x, &answer_no_ops, NULL);
  answer_json(x, 200, true, buf_str(&body));
}
