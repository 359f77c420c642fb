/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - how a gate gives up its rights. */
#ifndef CLOCHE_CONFINE_H
#define CLOCHE_CONFINE_H

#include "base/err.h"

/* Becomes `uid` (its own group, no others) inside an empty root, without capabilities, unable to gain any, under a list
 * of system calls that serving needs. uid 0 leaves the identity alone (a test without root). */
int gate_confine(unsigned uid, struct err *err);

#endif
