/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h - two connected sockets joined: what one says the other hears, unseen where the kernel can carry it (splice).
 * The slower side holds the faster one back; the end of one direction ends that direction alone. */
#ifndef CLOCHE_EGRESS_RELAY_H
#define CLOCHE_EGRESS_RELAY_H

#include "base/base.h"
#include "net/tls.h"

struct relay;

struct relay_plan {
  uv_loop_t *loop;
  int near, far;     /* both owned, in all cases */
  size_t high_water; /* bytes that wait for one side until the other is no longer read */
  unsigned idle_ms;
  bool pair;        /* near is one end of a socket pair: when the other is closed, nobody hears what far says */
  struct tls *tls;  /* the far side is spoken to in TLS by this client; NULL = plainly */
  const char *name; /* whom it must be then */
  /* Once, when both sides are gone; out: bytes from near to far. refusal: why TLS failed, or NULL. */
  void (*done)(void *arg, uint64_t in, uint64_t out, const char *refusal);
  void *arg;
};

struct relay *relay_start(const struct relay_plan *plan); /* NULL: `done` will not come */
void relay_cut(struct relay *r);                          /* both are reset; `done` follows, not from inside */

#endif
