/* SPDX-License-Identifier: Apache-2.0 */
/* content_confine.h - how the content role gives up its rights. */
#ifndef CLOCHE_CONTENT_CONFINE_H
#define CLOCHE_CONTENT_CONFINE_H

#include "base/err.h"

/* Into a user namespace whose ids 0 to 65535 are those that files of volumes have on the disk, and an empty root. Of
 * the capabilities of that namespace those over files stay. `threads` starts all threads that there will be. */
int content_confine(void (*threads)(void *arg), void *arg, struct err *err);

#endif
