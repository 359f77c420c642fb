/* SPDX-License-Identifier: Apache-2.0 */
/* net_log.h - the log of where boxes connected: one ring per box, a file that the watcher (netlog/netlog.h) writes. The
 * warden opens the files, tells the watcher which slot is whose, and hands descriptors to those who read; it never
 * reads a line. A paused box keeps its ring; of an ended one the last lines are in the store. */
#ifndef CLOCHE_WARDEN_NET_LOG_H
#define CLOCHE_WARDEN_NET_LOG_H

#include "jail/net/net_config.h"
#include "wire/egress_policy.h"

struct box;
struct warden;

#define NET_LOG_KEEP ((size_t)64 << 10) /* bytes kept of an ended box */

/* While the process has one thread; before the rules that log are written. Sets config's log_group. */
int net_log_open(struct warden *w, struct jail_net_config *config, struct err *err);
void net_log_listen(struct warden *w); /* once boxes are known */
void net_log_close(struct warden *w);
bool net_log_full(const struct warden *w);

void net_log_bind(struct box *b);   /* its processes run */
void net_log_unbind(struct box *b); /* they do not any more */
void net_log_keep(struct box *b);   /* it ended: its last lines go to the store, its ring is removed */
/* The egress gateway saw a connection or request of a box. */
void net_log_request(struct box *b, const struct egress_record_body *r, struct str text);
/* A ring for reading, of a box or of one that ended lately; -ENOENT. */
int net_log_read(struct warden *w, struct str id, struct str team, const struct box *b);

#endif
