/* SPDX-License-Identifier: Apache-2.0 */
/* bench_settle.c - the rule between two measurements: what the last one left behind must not weigh on the next. A
 * server on this machine refills its pool, takes boxes down and writes disks out after the answer; so a measurement
 * begins when the machine's processors were nearly idle for a moment, or when that does not come to pass in time. A
 * machine that is busy with something else is not waited for again and again. A server elsewhere is not seen, and
 * nothing is lost by looking. */
#include "cli/bench/bench.h"

#include <stdio.h>
#include <time.h>

#define LOOK_MS   250 /* at a time */
#define IDLE_PART 0.9 /* of the processors' time */
#define PATIENCE  2   /* measurements in a row that waited in vain */

struct ticks {
  uint64_t idle, all;
};

/* The first line of /proc/stat: user nice system idle iowait irq softirq steal. Waiting for a disk is not idle: writes
 * that go on would be in the next one's way. */
static bool ticks_read(struct ticks *t)
{
  cleanup_buf struct buf text = BUF_INIT(1 << 20);
  *t = (struct ticks){0};
  if (file_read("/proc/stat", &text))
    return false;
  struct str line, name, rest, field;
  str_cut(buf_str(&text), '\n', &line, &rest);
  str_cut(line, ' ', &name, &rest);
  rest = str_trim(rest);
  for (unsigned i = 0; i < 8 && rest.n; i++) {
    uint64_t value;
    str_cut(rest, ' ', &field, &rest);
    if (str_u64(field, &value))
      return false;
    t->all += value;
    t->idle += i == 3 ? value : 0;
  }
  return t->all > 0;
}

void settle(const struct bench *b)
{
  static unsigned in_vain;
  struct ticks before, after;
  int64_t until = now_ns() + (int64_t)b->settle_s * 1000000000;
  if (!b->settle_s || in_vain >= PATIENCE || !ticks_read(&before))
    return;
  while (now_ns() < until) {
    nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    if (!ticks_read(&after))
      return;
    if ((double)(after.idle - before.idle) >= IDLE_PART * (double)(after.all - before.all)) {
      in_vain = 0;
      return;
    }
    before = after;
  }
  in_vain++;
  fprintf(stderr, "  begun on a machine that is busy, after %u s\n", b->settle_s);
}
