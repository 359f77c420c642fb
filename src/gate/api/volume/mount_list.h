/* SPDX-License-Identifier: Apache-2.0 */
/* mount_list.h - 'volumeMounts' of a create or a build, as clients send it: [{"name", "path"}]. */
#ifndef CLOCHE_GATE_API_MOUNT_LIST_H
#define CLOCHE_GATE_API_MOUNT_LIST_H

#include "base/base.h"
#include "base/json.h"

#define MOUNT_NAME_MAX   128
#define MOUNT_PATH_MAX   512
#define MOUNTS_MAX       64    /* entries that are looked at */
#define MOUNT_FAULTS_MAX 1500  /* bytes of the text */
#define MOUNT_LINES_MAX  65536 /* the same */

/* Sound entries become lines "name TAB path", all others a text that names each with what is wrong. NULL, null or []:
 * nothing. Whether a volume exists only the warden knows. */
void mount_list_read(const struct json *list, struct buf *lines, struct buf *faults);

/* A text of lines back to the list. */
void mount_list_put(struct jw *w, struct str lines);

#endif
