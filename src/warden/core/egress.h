/* SPDX-License-Identifier: Apache-2.0 */
/* egress.h - egress of boxes: which get outbound networking, and with which lists. The lists come from the gate as
 * lines of checked entries; the firewall itself is jail_net's. */
#ifndef CLOCHE_WARDEN_EGRESS_H
#define CLOCHE_WARDEN_EGRESS_H

#include "jail/net/jail_net.h"

struct box;
struct box_egress;
struct warden;

/* At start, while the process has one thread. Without it (setting `internet` 0, or a host that can't) boxes have only
 * loopback; err says why. */
int egress_open(struct warden *w, struct err *err);
void egress_close(struct warden *w);

bool egress_on(const struct warden *w);
/* May this box go out at all? No link is made for one that is closed and has nothing on its allow list. */
bool egress_wanted(const struct warden *w, unsigned flags, struct str allow);
/* No lists: a warm box will do. */
bool egress_plain(unsigned flags, struct str allow, struct str deny);
/* Fills `net`, its lists in the arena. */
void egress_plan(const struct warden *w, unsigned slot, unsigned flags, struct str allow, struct str deny,
                 const struct box_egress *gateway, struct arena *a, struct jail_net *net);
/* Of a box that is gone: its names are nobody's. Any thread. */
void egress_forget(const struct warden *w, unsigned slot);
uint32_t egress_pool(const struct warden *w); /* first address of the boxes' /16, host byte order; 0 = none */
bool egress_gateway(const struct warden *w);  /* is there one? Settings internet and egress_port */
uint32_t egress_address(const struct warden *w, unsigned slot); /* of a box, host byte order; 0 = none */
/* The listening socket of the egress gateway: a descriptor, or negative. */
int egress_listen(const struct warden *w, struct err *err);
/* Where boxes ask for names. */
const char *egress_nameserver(const struct warden *w, struct arena *a);
/* New lists for a living box, and whether its traffic goes to the gateway; makes the link when it had none. Planned on
 * the loop, with copies of all it needs; written on a worker, since nft takes its time; the box's slot is held
 * meanwhile (id_slots.h). */
struct egress_writing {
  struct arena arena;
  struct jail_net net;
  int netns;
  bool needed, linked; /* linked: it has a link, once it was written too */
};
void egress_writing_plan(struct egress_writing *x, const struct box *b, unsigned flags, struct str allow,
                         struct str deny, const struct box_egress *gateway);
int egress_write(struct egress_writing *x, struct err *err); /* any thread */
void egress_writing_end(struct egress_writing *x);

#endif
