/* SPDX-License-Identifier: Apache-2.0 */
/* volume_content.h - requests about files of volumes, on their way to the content role (src/content) and back.
 *
 * The warden says which volume a request may be about, opens its root on a worker thread, and passes both on; what a
 * path means it does not know. A request that the content role did not answer when it died goes to the next one, marked
 * as asked again. Roots are kept open for a while: opening one may mount an image.
 *
 * Every request has a deadline (volume_timeout_s): a filesystem that stands still holds up requests about its volumes,
 * and those are refused then; threads that wait for it are not those of other work (worker_pool.h). A content role
 * whose loop does not answer a ping is replaced. */
#ifndef CLOCHE_WARDEN_VOLUME_CONTENT_H
#define CLOCHE_WARDEN_VOLUME_CONTENT_H

#include "warden/core/reply.h"
#include "warden/db/volume_store.h"

struct volume_content;

/* hung: is to have the content role replaced, which does not answer. */
void volume_content_open(struct warden *w, void (*hung)(struct warden *w));
void volume_content_close(struct warden *w);
void volume_content_link(struct warden *w, int fd); /* takes the warden's end of a new link */
/* Answers the request, later. packet: a WIRE_CONTENT of a gate, or of root; the volume is `row`. */
void volume_content_call(struct warden *w, struct origin origin, const struct row_volume *row, struct str packet);
void volume_content_forget(struct warden *w, const char *volume); /* its root is let go: it is to be deleted */

#endif
