/* SPDX-License-Identifier: Apache-2.0 */
/* image_filter.h - the system calls that the maker of layer images may make. For image_maker.c. */
#ifndef CLOCHE_JAIL_FS_IMAGE_FILTER_H
#define CLOCHE_JAIL_FS_IMAGE_FILTER_H

#include "base/base.h"
#include <linux/filter.h>

/* Built once per process and shared; NULL with err set when libseccomp refuses. */
const struct sock_fprog *image_filter(struct err *err);

#endif
