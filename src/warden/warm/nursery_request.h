/* bell.h - a box's agent asks for a nursery (boot.h, BOOT_BELL), and a fork of the zygote goes in. Every awake box has one whose Python
 * would load the same as a zygote's, and which has kernels of this version. Who belongs to another user than the zygote's helps
 * itself, as after a restore by a criu that was not made by scripts/criu. */
#ifndef CLOCHE_BELL_H
#define CLOCHE_BELL_H

#include "warden/box.h"

void bell_hang(struct box *b);
void bell_take(struct box *b);
void bells_answer(struct warden *w); /* a zygote is loaded, or has ended: who waits for it is told */

#endif
