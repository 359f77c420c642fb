/* SPDX-License-Identifier: Apache-2.0 */
/* box_create.h - new boxes: from a request to the reply that one is ready. All functions run on the warden's loop. */
#ifndef CLOCHE_WARDEN_BOX_CREATE_H
#define CLOCHE_WARDEN_BOX_CREATE_H

#include "warden/core/box_state.h"

/* Begins a launch; the reply goes to `origin` when the box is ready. -EINVAL, -ENOENT, -ESTALE, -EAGAIN (limit),
 * -EDQUOT (too fast: *retry_s). */
int box_create(struct warden *w, const struct box_params *params, struct origin origin, unsigned *retry_s,
               struct err *err);

/* The same of a request with an idempotency key (params->idempotency_key, params->fingerprint): executed once, every
 * repeat gets the first answer for as long as it is kept; see idempotency_rules.h. Beside the errors of box_create
 * -EKEYREJECTED, -EINPROGRESS, -EOWNERDEAD, and -ENOBUFS when the key can't be kept. */
int box_create_once(struct warden *w, const struct box_params *params, struct origin origin, unsigned *retry_s,
                    struct err *err);

/* The end of a launch of a registered box, for boxes made in other ways too (forks, boxes of failed builds). It is told
 * as the event that the caller names. Frees the box when the launch failed; launch->err says why. */
struct launch;
typedef int (*box_put_fn)(struct warden *w, const struct row_box *row, struct err *err); /* box_event.h */
int box_launched(struct launch *launch, box_put_fn put);
/* The same of one that could not even begin; the caller has counted it out of warden.launches. */
void box_launch_failed(struct box *b, int r, const struct err *err);

#endif
