/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - where a file is: "ID:PATH" in a sandbox, anything else on this machine. */
#ifndef CLOCHE_CLI_PLACE_H
#define CLOCHE_CLI_PLACE_H

#include "base/base.h"

struct place {
  char id[64];      /* "": on this machine */
  const char *path; /* borrowed; "." where nothing follows the colon */
};

/* The ID of a sandbox or the name of a volume is letters, digits, '-' and '_' before the first colon, with no '/'
 * before it; write ./a:b for a local file of such a name. */
void place_parse(const char *word, struct place *out);
/* The last part of a path, without slashes behind it; "" for "/" and what ends with "." or "..". */
struct str path_last(const char *path);
/* Whether a name that a sandbox told may be made in a local directory: not empty, no '/', neither "." nor "..". */
bool name_is_plain(const char *name);

#endif
