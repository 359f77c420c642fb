/* SPDX-License-Identifier: Apache-2.0 */
/* sender_confine.h - how the sender gives up its rights. */
#ifndef CLOCHE_SENDER_CONFINE_H
#define CLOCHE_SENDER_CONFINE_H

#include "base/err.h"

/* Becomes `uid` (its own group, no others) in a root that holds copies of the three files that resolving names needs
 * and nothing else, without capabilities, unable to gain any, under limits and a list of system calls. uid 0 leaves the
 * identity alone (a test without root). `threads` starts all threads that there will be: after the root and the user
 * have changed, which they would not see, and before the filter, which allows no new ones. */
int sender_confine(unsigned uid, void (*threads)(void *arg), void *arg, struct err *err);

#endif
