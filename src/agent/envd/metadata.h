/* SPDX-License-Identifier: Apache-2.0 */
/* metadata.h - a file's own key-value pairs, kept as extended attributes `user.e2b.<key>`. */
#ifndef CLOCHE_AGENT_ENVD_METADATA_H
#define CLOCHE_AGENT_ENVD_METADATA_H

#include "net/http.h"
#include "rpc/schema.h"

#define METADATA_PREFIX "user.e2b."

/* All pairs of a file, links followed, sorted as the file system lists them; empty where there are none or they can't
 * be read. Pairs that are not UTF-8 are skipped. */
void metadata_read(const char *path, struct arena *a, struct rpc_list *out);

/* X-Metadata-* headers of an upload: keys lower-cased, first value wins. -EINVAL with a reason when one breaks a limit.
 */
int metadata_parse(const struct http_head *head, struct arena *a, struct rpc_list *out, struct err *err);

/* Makes the set exactly this one. Nothing is touched when nothing changes. 0, or -ENOSPC and the like; file systems
 * without attributes are no error. */
int metadata_write(int fd, const struct rpc_list *pairs);

#endif
