/* filter.h - the system calls a box may not make. */
#ifndef CLOCHE_FILTER_H
#define CLOCHE_FILTER_H

#include "base/base.h"
#include <linux/filter.h>

/* The program, built once per process and shared; NULL with err set when libseccomp refuses. With `nesting` the box
 * may make user namespaces and mount inside them. */
const struct sock_fprog *filter_get(bool nesting, struct err *err);

#endif
