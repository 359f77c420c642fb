/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.h - the warden's side of its connections: those of gates, which prove what they may do with each request
 * (authority.h), and those of the host's root user, who may send every request. Start reading at rpc.c: its table has
 * one row per type of request. */
#ifndef CLOCHE_WARDEN_RPC_RPC_H
#define CLOCHE_WARDEN_RPC_RPC_H

#include "warden/rpc/request.h"

/* Takes the descriptor. The connection is among the warden's from now on and removes itself when it is closed. */
struct ipc *rpc_accept(struct warden *w, int fd, enum peer_kind kind);

#endif
