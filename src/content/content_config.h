/* SPDX-License-Identifier: Apache-2.0 */
/* content_config.h - the settings of the content role. The rows of src/cli/config.c write them. */
#ifndef CLOCHE_CONTENT_CONFIG_H
#define CLOCHE_CONTENT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct content_config {
  bool confined;          /* false: no user namespace (a build under sanitizers) */
  uint64_t listing_max;   /* entries of one listing */
  bool sync;              /* an upload that was answered is on the disk */
  unsigned upload_idle_s; /* an upload that nothing was written to for so long is given up */
};

#endif
