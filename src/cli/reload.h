/* SPDX-License-Identifier: Apache-2.0 */
/* reload.h - settings of a running server: what SIGHUP does in the supervisor, and how roles get and change theirs. */
#ifndef CLOCHE_RELOAD_H
#define CLOCHE_RELOAD_H

#include "cli/config.h"

/* Reads all sources again. What can change is in `c` then, the rest is logged by name; a mistake is logged and leaves
 * `c` as it was. Returns whether roles are to be told. */
bool settings_reload(struct config *c, int argc, char **argv);
/* Memory with all settings for a role that starts, its own ones and no secret of another; -1 with errno. */
int settings_for_role(const struct config *c, const char *role);
/* The packet for roles that run (CONTROL_SETTINGS). */
void settings_packet(const struct config *c, struct buf *out);
/* In a role: takes such packets from now on (control.h). */
void settings_follow(struct config *c);

#endif
