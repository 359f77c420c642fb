/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - what kind of machine this is, as nodes tell it. Read before a process gives up its rights. */
#ifndef CLOCHE_WIRE_MACHINE_H
#define CLOCHE_WIRE_MACHINE_H

#include "base/base.h"

struct machine {
  char family[32], model[32], model_name[128], architecture[32], host[65];
  unsigned cpus;
};

void machine_read(struct machine *m);

#endif
