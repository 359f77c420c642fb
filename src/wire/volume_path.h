/* SPDX-License-Identifier: Apache-2.0 */
/* volume_path.h - how a path in a volume is spelled between processes: absolute, one slash between names, no `.` or
 * `..`. The gate makes it so, the content role takes nothing else. Pure. */
#ifndef CLOCHE_WIRE_VOLUME_PATH_H
#define CLOCHE_WIRE_VOLUME_PATH_H

#include "base/base.h"

#define VOLUME_PATH_SIZE 4096 /* with its NUL, as the kernel has it */
#define VOLUME_NAME_MAX  255  /* bytes of one name in it */

/* What a client wrote: white space around it goes, `..` above the root stays there. -EINVAL: empty or with a NUL;
 * -ENAMETOOLONG. */
int volume_path_clean(struct str given, struct buf *out);
bool volume_path_valid(struct str path);
bool volume_upload_valid(struct str id); /* of an upload: 20 of [a-z0-9] */

#endif
