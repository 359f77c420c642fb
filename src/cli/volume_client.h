/* SPDX-License-Identifier: Apache-2.0 */
/* volume_client.h - files of a volume for commands of the host's root user, by the same process and the same requests
 * as for clients of the API: nothing here walks a volume's tree itself. */
#ifndef CLOCHE_CLI_VOLUME_CLIENT_H
#define CLOCHE_CLI_VOLUME_CLIENT_H

#include "cli/admin_client.h"

struct volume_client {
  struct line line;
  char id[UUID_SIZE], team[UUID_SIZE];
};

struct volume_file {
  char type; /* f file, d directory, l link, ? else */
  struct str name, path, target;
  uint64_t size;
  unsigned mode, uid, gid;
  int64_t mtime_us;
};

/* All take absolute paths in the volume. -ENOENT: there is none. */
int volume_client_stat(struct volume_client *c, struct str path, struct arena *a, struct volume_file *out,
                       struct err *err);
/* Each entry of a directory; a negative answer of fn ends it. */
int volume_client_list(struct volume_client *c, struct str path, int (*fn)(const struct volume_file *f, void *arg),
                       void *arg, struct err *err);
int volume_client_open(struct volume_client *c, struct str path, uint64_t *size, struct err *err); /* a descriptor */
int volume_client_mkdir(struct volume_client *c, const struct volume_file *f, struct err *err); /* with its parents */
int volume_client_link(struct volume_client *c, const struct volume_file *f, struct err *err);
int volume_client_change(struct volume_client *c, const struct volume_file *f, struct err *err);
int volume_client_remove(struct volume_client *c, struct str path, struct err *err);

/* An upload: a descriptor to write to, then commit or drop. */
struct volume_upload {
  char id[UPLOAD_ID_SIZE];
  int fd;
};
int volume_upload_open(struct volume_client *c, struct str path, struct volume_upload *u, struct err *err);
int volume_upload_commit(struct volume_client *c, struct volume_upload *u, const struct volume_file *f,
                         struct err *err);
void volume_upload_drop(struct volume_client *c, struct volume_upload *u);

/* volume_copy.c, volume_archive.c */
int volume_copy(struct volume_client *c, bool in, const char *local, const char *path, struct err *err);
int volume_backup(struct volume_client *c, const char *file, struct err *err);
int volume_restore(struct volume_client *c, const char *file, struct err *err);

#endif
