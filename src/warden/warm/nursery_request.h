/* SPDX-License-Identifier: Apache-2.0 */
/* nursery_request.h - a box's agent asks for a nursery (boot_packet.h, BOOT_NURSERY_NAME), and a fork of the zygote
 * goes in. Every running box has one whose Python would load the same as a zygote's, and which has kernels of this
 * version. Who belongs to another user than the zygote's helps itself, as after a restore by a criu that was not made
 * by scripts/criu. */
#ifndef CLOCHE_WARDEN_WARM_NURSERY_REQUEST_H
#define CLOCHE_WARDEN_WARM_NURSERY_REQUEST_H

struct box;
struct warden;

void nursery_listen(struct box *b);
void nursery_unlisten(struct box *b);
void nursery_requests_answer(struct warden *w); /* a zygote is loaded, or has ended: waiting requests are answered */

#endif
