/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - this machine's part in placing boxes: one that drains takes no new ones, wakes none and builds nothing,
 * while those that run go on. It is kept over restarts, until somebody says that it is ready again. */
#ifndef CLOCHE_WARDEN_NODE_H
#define CLOCHE_WARDEN_NODE_H

#include "wire/wire.h"

struct warden;

void node_open(struct warden *w); /* as the last warden left it */
int node_set(struct warden *w, enum node_status status, struct err *err);
void node_figures(const struct warden *w, struct wire_status *out);
int node_admit(const struct warden *w, struct err *err); /* -ESHUTDOWN while it drains, or has no lease */

#endif
