/* SPDX-License-Identifier: Apache-2.0 */
/* audit_config.h - the settings of the audit role. The rows of src/cli/config.c write them; the role only reads. */
#ifndef CLOCHE_AUDIT_CONFIG_H
#define CLOCHE_AUDIT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct audit_config {
  unsigned uid;           /* who it becomes; 0 = stays (tests without root) */
  unsigned to_log;        /* 0: files; 1: the server's log, which is the journal under systemd */
  uint64_t file_max;      /* bytes of one file */
  unsigned files_max;     /* with the one that is written to */
  unsigned refused_files; /* the same of records of nobody */
  const char *data;       /* the data directory */
};

#define AUDIT_TOP_DIR "audit" /* of the data directory, root's */
#define AUDIT_LOG_DIR "log"   /* in it, the role's */

#endif
