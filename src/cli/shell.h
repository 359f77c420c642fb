/* SPDX-License-Identifier: Apache-2.0 */
/* shell.h - boxes that commands of the host's root user make for themselves. */
#ifndef CLOCHE_CLI_SHELL_H
#define CLOCHE_CLI_SHELL_H

#include "cli/template.h"
#include "wire/sizes.h"

/* A sandbox of a template; its id is left in `id`. */
int shell_box(struct line *l, const char *team, const char *ref, unsigned seconds, char id[BOX_ID_SIZE],
              struct err *err);

#endif
