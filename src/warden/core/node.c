/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - see node.h. */
#include "warden/core/node.h"

#include "warden/core/cluster.h"
#include "warden/core/warden_state.h"
#include <inttypes.h>
#include <stdio.h>

#define KEPT "node" /* in the store: when it began to drain; empty = it is ready */

void node_open(struct warden *w)
{
  cleanup_buf struct buf since = BUF_INIT(U64_TEXT);
  uint64_t us = 0;
  w->node_since_us = w->started_us;
  if (store_meta_get(w->store, KEPT, &since) || !since.n || str_u64(buf_str(&since), &us))
    return;
  w->draining = true;
  w->node_since_us = (int64_t)us;
  log_warn("this node drains and takes no new boxes; `cloche node ready` ends that");
}

int node_set(struct warden *w, enum node_status status, struct err *err)
{
  char since[U64_TEXT] = "";
  int64_t now = clock_wall_us();
  bool drain = status == NODE_DRAINING;
  if (drain == w->draining)
    return 0;
  if (drain)
    snprintf(since, sizeof(since), "%" PRId64, now);
  int r = store_meta_put(w->store, KEPT, str_of(since), err);
  if (r)
    return r;
  w->draining = drain;
  w->node_since_us = now;
  log_info(drain ? "this node drains: no new boxes" : "this node is ready for boxes");
  return 0;
}

void node_figures(const struct warden *w, struct wire_status *out)
{
  out->node = w->draining ? NODE_DRAINING : NODE_READY;
  out->node_since_us = w->node_since_us;
}

int node_admit(const struct warden *w, struct err *err)
{
  return w->draining ? err_set(err, -ESHUTDOWN, "this server is being drained and takes no new sandboxes")
                     : cluster_admit(w, err);
}
