/* SPDX-License-Identifier: Apache-2.0 */
/* box_meter.h - what boxes used, as counters for /metrics and OTLP: processor time and bytes of their networks, over
 * all runs. The setting metrics_boxes_max says how many have counters of their own, in the order in which they were
 * seen, and until they end; the others are counted together. Without that setting nothing is read or counted. */
#ifndef CLOCHE_WARDEN_BOX_METER_H
#define CLOCHE_WARDEN_BOX_METER_H

#include "base/base.h"

struct box_reading {
  uint64_t cpu_usec, net_in, net_out; /* net: as the box sees it */
};

struct box_meter {
  bool own;                       /* it has counters of its own */
  struct box_reading last, total; /* of this run; since it has or shares counters */
};

struct box_meters {
  size_t own; /* boxes that have counters of their own */
  struct box_reading others;
};

/* Bytes of the box's link, from the host's view of its network namespace; zeros when it has none. Any thread. */
void box_meter_net(struct proc_id init, struct box_reading *out);
/* /proc/net/dev as the kernel writes it; interface names in it may be the box's choice. Pure. */
void box_meter_parse(struct str text, struct box_reading *out);
/* One reading of a box; `most` may have counters of their own. */
void box_meter_add(struct box_meters *all, struct box_meter *m, size_t most, const struct box_reading *now);
void box_meter_drop(struct box_meters *all, struct box_meter *m); /* it is gone: its place is another's */

#endif
