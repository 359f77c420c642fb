/* SPDX-License-Identifier: Apache-2.0 */
/* warm_box.h - a box of the warm pool, which a launch gives an identity. */
#ifndef CLOCHE_WARDEN_WARM_WARM_BOX_H
#define CLOCHE_WARDEN_WARM_WARM_BOX_H

#include "jail/jail.h"
#include "wire/sizes.h"
#include <uv.h>

struct warm_pool;

struct warm_box {
  struct warm_box *next;
  struct jail jail;
  char name[HOST_NAME_SIZE], dir[DATA_DIR_SIZE];
  unsigned slot;
  int boot; /* the agent waits for its identity here; -1: it is frozen */
  uv_poll_t *watch;
  struct warm_pool *warm_pool;
};

#endif
