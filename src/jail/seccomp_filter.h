/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp_filter.h - the system calls a box may not make. */
#ifndef CLOCHE_JAIL_SECCOMP_FILTER_H
#define CLOCHE_JAIL_SECCOMP_FILTER_H

#include "base/base.h"
#include <linux/filter.h>

/* The program, built once per process and shared; NULL with err set when libseccomp refuses. */
const struct sock_fprog *filter_get(struct err *err);
/* For a zygote, which runs the libraries of a template that a stranger may have built: the same but for what its forks
 * need to enter a box. */
const struct sock_fprog *filter_zygote(struct err *err);
/* For the jail around a guest: the same, less all that QEMU has no use for. QEMU adds a filter of its own. */
const struct sock_fprog *filter_vm(struct err *err);
/* A filter of libseccomp as a program that a child between fork and exec can load. The memory is the caller's. */
int filter_export(void *ctx, struct sock_fprog *out);

#endif
