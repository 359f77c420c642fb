/* SPDX-License-Identifier: Apache-2.0 */
/* host_memory.h - how much memory the machine has, and how much of it could be given out now. */
#ifndef CLOCHE_WARDEN_HOST_MEMORY_H
#define CLOCHE_WARDEN_HOST_MEMORY_H

#include "base/base.h"

int host_memory(uint64_t *total, uint64_t *available); /* bytes; -errno */

#endif
