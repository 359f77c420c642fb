/* SPDX-License-Identifier: Apache-2.0 */
/* etc_files.h - the three files of /etc that name a box: hostname, hosts, resolv.conf. */
#ifndef CLOCHE_JAIL_FS_ETC_FILES_H
#define CLOCHE_JAIL_FS_ETC_FILES_H

#include "base/base.h"

/* Writes them into upper/ of a mount from disk_open, as far as they are not there. nameserver may be NULL. */
int etc_write(int tree, const char *hostname, const char *nameserver, struct err *err);

#endif
