/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.h - what must be known before a box with egress settings starts, or a running one gets them: an authority of
 * its own where it has header rules, and that the name of its proxy leads to an address that may be reached. On a
 * worker: neither may hold up the loop. */
#ifndef CLOCHE_WARDEN_EGRESS_PREPARE_H
#define CLOCHE_WARDEN_EGRESS_PREPARE_H

#include "warden/core/box_egress.h"

struct warden;

/* `e` is the caller's again in `done`, which is called once, later; nobody else looks at it meanwhile. With 0 it has an
 * authority if it needs one. -EINVAL: the proxy's name does not resolve, or to an address that no box may reach.
 * `known`: the settings were accepted before (of a box that is copied), the proxy is not looked up again. */
typedef void egress_prepared_fn(void *arg, int result, const struct err *err);
void egress_prepare(struct warden *w, const char *team, struct box_egress *e, bool known, egress_prepared_fn *done,
                    void *arg);

/* Pure: the addresses in the answer of `getent ahostsv4`; 0 when there is one and all may be reached. */
int egress_addresses_check(struct str answer, struct str host, struct err *err);

#endif
