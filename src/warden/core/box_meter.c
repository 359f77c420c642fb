/* SPDX-License-Identifier: Apache-2.0 */
/* box_meter.c - see box_meter.h. */
#include "warden/core/box_meter.h"

#include <stdio.h>

#define LINK_NAME "eth0" /* the box's end of its link, see src/jail/net/rtnl.c */

/* "  eth0: bytes packets errs drop fifo frame compressed multicast bytes ...": the first and the ninth number. */
static bool parse_line(struct str line, struct box_reading *out)
{
  struct str name, rest, word;
  if (!str_cut(str_trim(line), ':', &name, &rest) || !str_is(name, LINK_NAME))
    return false;
  for (int i = 0; i < 9; i++) {
    uint64_t v;
    str_cut(str_trim(rest), ' ', &word, &rest);
    if (str_u64(word, &v))
      return false;
    if (i == 0)
      out->net_in = v;
    if (i == 8)
      out->net_out = v;
  }
  return true;
}

void box_meter_parse(struct str text, struct box_reading *out)
{
  struct str line;
  while (text.n) {
    str_cut(text, '\n', &line, &text);
    if (parse_line(line, out))
      return;
  }
}

void box_meter_net(struct proc_id init, struct box_reading *out)
{
  char path[64];
  uint64_t start;
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  snprintf(path, sizeof(path), "/proc/%d/net/dev", init.pid);
  struct box_reading got = {0};
  if (!file_read(path, &b))
    box_meter_parse(buf_str(&b), &got);
  if (proc_start_time(init.pid, &start) || start != init.start) /* of another process by now */
    return;
  out->net_in = got.net_in;
  out->net_out = got.net_out;
}

/* A box that was restored counts anew. */
static void add(uint64_t *total, uint64_t *last, uint64_t now)
{
  *total += now < *last ? now : now - *last;
  *last = now;
}

void box_meter_add(struct box_meters *all, struct box_meter *m, size_t most, const struct box_reading *now)
{
  if (!m->own && all->own < most) {
    m->own = true;
    all->own++;
  }
  struct box_reading *total = m->own ? &m->total : &all->others;
  add(&total->cpu_usec, &m->last.cpu_usec, now->cpu_usec);
  add(&total->net_in, &m->last.net_in, now->net_in);
  add(&total->net_out, &m->last.net_out, now->net_out);
}

void box_meter_drop(struct box_meters *all, struct box_meter *m)
{
  all->own -= m->own;
  m->own = false;
}
