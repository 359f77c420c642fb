/* image.h - memory on disk, under <data>/checkpoints: where an image lies, when it goes, and whether this host can make any. An
 * image belongs to the row of a box or of a build that names it; what no row names is swept at start. Names begin with the id of the
 * box they were taken of, and a dash. */
#ifndef CLOCHE_IMAGE_H
#define CLOCHE_IMAGE_H

#include "warden/warden.h"

/* At start. Sets w->images_on when a real dump and restore worked; else says why not, once, and boxes sleep frozen. */
void images_open(struct warden *w);
/* After boxes and builds are known. */
void images_sweep(struct warden *w);
void layers_sweep(struct warden *w); /* copies of boxes that no build names, and half ones */
void image_path(const struct warden *w, const char *name, char out[1024]);
void image_drop(struct warden *w, const char *name); /* on a worker, unless a build still names it; "" = nothing to do */
void layer_drop(struct warden *w, const char *path); /* the same for a layer directory that no build names any more */

/* Packs the image of one box that has slept long enough, where the settings ask for it. Now and then, on the loop. */
void images_tend(struct warden *w);

#endif
