/* SPDX-License-Identifier: Apache-2.0 */
/* box_recover.h - at start: adopts boxes that live, records those that died, removes what no box owns. */
#ifndef CLOCHE_WARDEN_BOX_RECOVER_H
#define CLOCHE_WARDEN_BOX_RECOVER_H

#include "base/base.h"

struct warden;
int box_recover(struct warden *w, struct err *err);

#endif
