/* SPDX-License-Identifier: Apache-2.0 */
/* image_maker.h - runs mkfs.erofs over what tenants have put into a layer. For layer_image.c. */
#ifndef CLOCHE_JAIL_FS_IMAGE_MAKER_H
#define CLOCHE_JAIL_FS_IMAGE_MAKER_H

#include "base/base.h"

#define IMAGE_MAKER         "mkfs" /* its root in the parts of the tier (scripts/microvm) */
#define IMAGE_MAKER_PROGRAM "mkfs.erofs"

/* Fills `image`, an open file, with the tree of directory `layer`. `root` has the program, its libraries and the names
 * `layer`, `image` and `tmp`, empty. Waits for the end. */
int image_maker_run(const char *root, const char *layer, int image, struct err *err);

#endif
