/* SPDX-License-Identifier: Apache-2.0 */
/* content_config.h - the settings of the content role. The rows of src/cli/config.c write them. */
#ifndef CLOCHE_CONTENT_CONFIG_H
#define CLOCHE_CONTENT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct content_config {
  bool confined;          /* false: no user namespace (a build under sanitizers) */
  uint64_t listing_max;   /* entries of one listing */
  unsigned listing_s;     /* for which it may be read */
  unsigned listing_mb;    /* of its JSON */
  unsigned removal_s;     /* of one request to remove a tree */
  unsigned threads;       /* that work with files */
  unsigned team_threads;  /* of them for one team at once */
  unsigned own_threads;   /* and for one volume */
  unsigned uploads;       /* under way at once */
  unsigned team_uploads;  /* of one team */
  unsigned own_uploads;   /* into one volume */
  bool sync;              /* an upload that was answered is on the disk */
  unsigned upload_idle_s; /* an upload that nothing was written to for so long is given up */
};

#endif
