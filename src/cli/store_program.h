/* SPDX-License-Identifier: Apache-2.0 */
/* store_program.h - where the program cloche-store is, which alone is linked with libpq. */
#ifndef CLOCHE_CLI_STORE_PROGRAM_H
#define CLOCHE_CLI_STORE_PROGRAM_H

#include "base/base.h"

int store_program(char *out, size_t size, struct err *err);
/* What the store process is told at its start (src/store/store_role.h), in memory: a descriptor, or -errno. */
struct config;
int store_description(const struct config *c, struct err *err);

#endif
