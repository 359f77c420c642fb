/* SPDX-License-Identifier: Apache-2.0 */
/* surroundings.h - checks of what else lives on the machine: firewalls, security modules, the filesystem below the data
 * directory, the clock, other servers. For the files of this folder. */
#ifndef CLOCHE_DOCTOR_SURROUNDINGS_H
#define CLOCHE_DOCTOR_SURROUNDINGS_H

#include "jail/jail_doctor.h"

#define SURROUNDINGS_MAX 8

/* Settings of the server. All borrowed. */
struct surroundings_place {
  const char *data, *net_pool;
  bool internet;
};
size_t surroundings_examine(const struct surroundings_place *place, struct jail_check *out); /* how many were filled */

/* Pure: whether a chain of somebody else, of those that `nft list chains` prints, drops what is forwarded; `where` gets
 * its family, table and name. docker: its chain for the user's rules is there. */
bool forward_drops(struct str chains, char *where, size_t size, bool *docker);

#endif
