/* SPDX-License-Identifier: Apache-2.0 */
/* layer_image.h - a layer as a read-only erofs image, for guests. */
#ifndef CLOCHE_JAIL_FS_LAYER_IMAGE_H
#define CLOCHE_JAIL_FS_LAYER_IMAGE_H

#include "base/base.h"

/* The image of the layer in directory `layer`, opened to read; made beside it (<layer>.erofs) at first use, so that it
 * goes where the layer goes. Several callers may ask at once. `parts` is the directory with what the tier is made of
 * (vm/vm_parts.h), the maker of images among it. */
int layer_image_open(const char *parts, const char *layer, struct err *err);

#endif
