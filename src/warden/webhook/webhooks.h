/* SPDX-License-Identifier: Apache-2.0 */
/* webhooks.h - webhooks of teams, and the delivery of events to them.
 *
 * Start here in this folder. Recording an event adds an attempt per webhook to the store, in the same transaction
 * (db/webhook_store.h). This module notices them, signs them and hands them to the sender (src/sender), which is
 * without rights and less trusted: it never sees a secret, and its reports are read as a stranger's
 * (delivery_report.h).
 *
 * It promises: every attempt has a delivery id of its own, used once; an attempt that failed is repeated after a while,
 * a few times; what a dead sender or warden leaves under way is recorded as canceled and repeated at once, which does
 * not count; events of one sandbox go to one webhook in their order as long as none waits to be repeated; places go to
 * teams round robin, with a share for each team and each of its receivers, so that a slow receiver delays nobody
 * else's; and a team that has more waiting than it may loses the oldest, which is recorded. */
#ifndef CLOCHE_WARDEN_WEBHOOK_WEBHOOKS_H
#define CLOCHE_WARDEN_WEBHOOK_WEBHOOKS_H

#include "warden/db/webhook_store.h"

struct warden;

int webhooks_open(struct warden *w, struct err *err);
void webhooks_close(struct warden *w);
void webhooks_link(struct warden *w, int fd); /* takes the warden's end of a new link to the sender */
void webhooks_figures(struct warden *w, struct wire_status *out);

/* Borrowed until the next change. */
const struct row_webhook *webhook_find(struct warden *w, struct str team, struct str id); /* NULL: the team has none */
/* The webhooks of a team, oldest first: at = 0, 1, ...; NULL behind the last. */
const struct row_webhook *webhook_at(struct warden *w, struct str team, size_t at);

/* Takes the row's texts. -E2BIG: the team has as many as it may. */
int webhook_add(struct warden *w, struct row_webhook *row, struct err *err);
/* What is not given (p NULL) stays; enabled < 0 likewise. A webhook that is disabled drops what waits for it. */
struct webhook_change {
  struct str name, url, origin, events, secret;
  int enabled;
};
int webhook_change(struct warden *w, struct str team, struct str id, const struct webhook_change *c, struct err *err);
int webhook_remove(struct warden *w, struct str team, struct str id, struct err *err);

#endif
