/* SPDX-License-Identifier: Apache-2.0 */
/* warden.h - the privileged process: owns every box. Start reading at warden.c (the loop, its start and its end), then
 * rpc/rpc.c (the table of requests), box_create.c and box.c (the life of a box), db/catalog.c (teams and templates),
 * db/store.c (what survives). What the modules share is in warden_state.h. */
#ifndef CLOCHE_WARDEN_H
#define CLOCHE_WARDEN_H

#include "warden/core/warden_config.h"

/* The process's whole life; returns the exit status. fd 3 is the supervisor's control socket. */
int warden_main(const struct warden_config *config);

#endif
