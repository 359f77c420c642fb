/* SPDX-License-Identifier: Apache-2.0 */
/* copy_step.h - the COPY step of a template: an archive on standard input, its files put where they belong. */
#ifndef CLOCHE_AGENT_BUILD_COPY_STEP_H
#define CLOCHE_AGENT_BUILD_COPY_STEP_H

#include "base/base.h"

/* SOURCE as the recipe names it (its part without wildcards is taken off the archive's names), DEST (absolute or
 * relative to the working directory; a closing slash means a directory), OWNER ("", "name", "name:group", numbers),
 * MODE ("" or octal), USER whose files they are when no owner is given. The exit status; the reason on standard error.
 */
int copy_step_main(char **args);

/* The part of a source that has no wildcards: whole components, cleaned, "" = everything. */
int copy_step_prefix(struct str source, struct buf *out);

#endif
