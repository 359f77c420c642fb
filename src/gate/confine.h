/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - how a gate gives up its rights. */
#ifndef CLOCHE_CONFINE_H
#define CLOCHE_CONFINE_H

#include "base/err.h"

/* Becomes `uid` (its own group, no others) inside an empty root, without capabilities, unable to gain any. uid 0 leaves
 * the identity alone (a test without root). Threads that are started after it are confined as well. */
int gate_confine(unsigned uid, struct err *err);
/* Then, for all threads: a list of system calls that serving needs. */
int gate_filter(unsigned uid, struct err *err);

#endif
