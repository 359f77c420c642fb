/* SPDX-License-Identifier: Apache-2.0 */
/* console_pack.h - the files of the web console as sealed memory for the gates, which reach no files. */
#ifndef CLOCHE_CLI_CONSOLE_PACK_H
#define CLOCHE_CLI_CONSOLE_PACK_H

#include "base/base.h"

/* setting: a directory, or "off". *fd: sealed memory of file_pack.h, or -1 when the directory is not there: the server
 * was built without the console. False: it is off. */
bool console_pack_open(const char *setting, int *fd);

#endif
