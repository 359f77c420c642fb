/* SPDX-License-Identifier: Apache-2.0 */
/* box_seal.h - egress settings of boxes, sealed in the store by the master key of secrets: they hold the private key of
 * an authority and perhaps a proxy's password. */
#ifndef CLOCHE_WARDEN_SECRET_BOX_SEAL_H
#define CLOCHE_WARDEN_SECRET_BOX_SEAL_H

#include "base/base.h"
#include "wire/sizes.h"

struct warden;

#define BOX_SEALED_MAX ((size_t)2 << 20) /* bytes of settings */

int box_seal_put(struct warden *w, const char *box, struct str value, struct err *err); /* -ENOKEY */
/* Appended to `out`, which the caller wipes. -ENOENT: it has none. -ENOKEY, -EBADMSG as in secrets.h */
int box_seal_get(struct warden *w, const char *box, struct buf *out);

/* The next ones behind the box `after` go over to the current master key: 1 = there may be more, 0 = no more, or why
 * not. Those that do not open stay as they are and are counted. */
int box_reseal(struct warden *w, char after[BOX_ID_SIZE], uint64_t *failed, struct err *err);

#endif
