/* SPDX-License-Identifier: Apache-2.0 */
/* box_compress.c - see box_compress.h. */
#include "warden/box/box_compress.h"

#include "warden/box/transition.h"
#include "warden/core/warden_state.h"

static bool wants_compression(const struct box *b, int64_t now)
{
  return b->row.state == BOX_PAUSED && b->row.tier == TIER_CHECKPOINT && !b->transition && !b->compressed &&
         now - b->row.end_us >= (int64_t)b->warden->config->checkpoint_zstd_after_s * 1000000;
}

void box_compress_idle(struct warden *w)
{
  void *value;
  struct box *found = NULL;
  int64_t now = clock_wall_us();
  if (!w->config->checkpoint_zstd || w->stopping)
    return;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    struct box *b = value;
    if (b->transition && b->row.state == BOX_PAUSED) /* one at a time */
      return;
    if (wants_compression(b, now))
      found = b;
  }
  if (found)
    transition_compress(found);
}
