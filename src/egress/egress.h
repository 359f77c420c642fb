/* SPDX-License-Identifier: Apache-2.0 */
/* egress.h - the egress gateway: the role through which boxes with header rules or a proxy of their own go out.
 *
 * Start here in this folder. nftables turns such a box's connections to the gateway's listener after its lists have let
 * them (src/jail/net); the box is known by its source address, never by what it says. A connection is looked at without
 * taking a byte (peek.h): a host without a rule becomes a tunnel of untouched bytes (relay.h); for one with a rule the
 * gateway answers TLS itself with a certificate of the box's own authority, connects to the server, verifies it against
 * public roots for the very name that the rule was chosen by, and sets headers in each request (inspect.c). dial.h
 * reaches servers, directly or through the box's proxy (proxy_talk.h).
 *
 * It promises: a secret goes out only inside TLS, to a server that proved to be the host of the rule; a placeholder
 * never goes out; a request that a rule can't serve fails; nothing of a box with a policy goes out otherwise; no
 * address of the host's own networks or of boxes is connected to; connections, answers and secrets of one box are never
 * another box's; what a slow peer holds up is its own. It has no rights, no files, and no secret but those of the
 * policies that the warden handed to it (wire/egress_policy.h), which it wipes. */
#ifndef CLOCHE_EGRESS_EGRESS_H
#define CLOCHE_EGRESS_EGRESS_H

#include "egress/egress_config.h"

int egress_main(const struct egress_config *config);

#endif
