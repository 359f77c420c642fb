/* SPDX-License-Identifier: Apache-2.0 */
/* warden_client.h - requests to the warden and their replies. A request without a reply is sent again when a new warden
 * comes: the warden's requests are idempotent. */
#ifndef CLOCHE_GATE_WARDEN_CLIENT_H
#define CLOCHE_GATE_WARDEN_CLIENT_H

#include "gate/gate_state.h"

struct warden_reply {
  int status;        /* 0 or negative errno */
  struct str packet; /* fields by wire_get; borrowed */
  int fd;            /* -1, or the callee's */
};
typedef void (*warden_reply_fn)(const struct warden_reply *reply, void *arg);

/* Sends the packet built in b (its id is set here). on_item may be NULL. Returns a number for warden_call_cancel. */
uint64_t warden_call(struct gate *g, struct buf *b, warden_reply_fn on_item, warden_reply_fn on_reply, void *arg);
void warden_call_cancel(struct gate *g, uint64_t id); /* no callback will come; a late descriptor is closed */

/* What the warden announces without a request. */
struct warden_events {
  void (*connected)(struct gate *g);               /* a warden is there, the first or a new one */
  void (*box_held)(struct gate *g, struct str id); /* it is about to pause: no new exchange may go in */
  /* It ended or paused: its streams are cut. Fields: W_ID, and W_CAUSE and W_END where it ended. */
  void (*box_ended)(struct gate *g, struct str packet);
  void (*keys_changed)(struct gate *g);
};
void warden_attach(struct gate *g, int fd, const struct warden_events *events); /* a new link: resend everything */

#endif
