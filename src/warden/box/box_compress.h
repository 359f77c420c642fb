/* SPDX-License-Identifier: Apache-2.0 */
/* box_compress.h - compresses the checkpoint of one box at a time that has been paused long enough, where the settings
 * ask for it (checkpoint_zstd). Called now and then, on the loop. */
#ifndef CLOCHE_WARDEN_BOX_COMPRESS_H
#define CLOCHE_WARDEN_BOX_COMPRESS_H

struct warden;
void box_compress_idle(struct warden *w);

#endif
