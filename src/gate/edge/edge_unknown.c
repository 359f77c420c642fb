/* SPDX-License-Identifier: Apache-2.0 */
/* edge_unknown.c - see edge_unknown.h. Where the filter can't tell (before the warden's hello), a question counts when
 * it is asked, not when it is answered: who leaves before the answer has asked all the same. */
#include "gate/edge/edge_unknown.h"

unsigned unknown_wait(struct gate *g, const struct http_x *x, const char *box, bool *counted)
{
  uint8_t client[CLIENT_LEN];
  *counted = false;
  if (g->ids && id_filter_has(g->ids, str_of(box)))
    return 0;
  client_of(x, client);
  unsigned wait_s = throttle_wait(&g->unknown, client, clock_mono_us());
  if (wait_s)
    return wait_s;
  throttle_count(&g->unknown, client, clock_mono_us());
  *counted = true;
  return 0;
}

void unknown_forgive(struct gate *g, const struct http_x *x)
{
  uint8_t client[CLIENT_LEN];
  client_of(x, client);
  throttle_forgive(&g->unknown, client, clock_mono_us());
}
