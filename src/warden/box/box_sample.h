/* SPDX-License-Identifier: Apache-2.0 */
/* box_sample.h - measures what running boxes use, on a worker thread, one round at a time. */
#ifndef CLOCHE_WARDEN_BOX_SAMPLE_H
#define CLOCHE_WARDEN_BOX_SAMPLE_H

struct warden;
void box_sample_all(struct warden *w);

#endif
