/* SPDX-License-Identifier: Apache-2.0 */
/* store_config.h - the settings of the store process. The rows of src/cli/config.c write them; the supervisor hands
 * them over (store_role.h). */
#ifndef CLOCHE_STORE_CONFIG_H
#define CLOCHE_STORE_CONFIG_H

struct store_config {
  const char *url;  /* without a password; "" = the rows are in SQLite alone */
  const char *file; /* one line: the URL, with its password; "" = none */
  unsigned uid;     /* who the process becomes; 0 = stays */
};

#endif
