/* SPDX-License-Identifier: Apache-2.0 */
/* file_ops.h - what the content API does with the files of one volume, whose root is a descriptor.
 *
 * Paths are absolute and clean (wire/volume_path.h). Links on the way are followed as if the root were "/"; the last
 * name is not followed, but for reading a file. A tree may change at any time under another's hand: each step holds the
 * descriptor that the step before has opened, so that the worst a race can do is an error, or the same done to another
 * file of the same volume. All return 0 or a negative errno with a message for the client: -ENOENT (404), -EEXIST,
 * -EISDIR, -EBUSY (409), -EINVAL, -E2BIG (400), -ENOSPC (507). All block. */
#ifndef CLOCHE_CONTENT_FILE_OPS_H
#define CLOCHE_CONTENT_FILE_OPS_H

#include "base/base.h"
#include <sys/stat.h>

#define OWNER_KEEP UINT32_MAX
#define TIME_KEEP  INT64_MAX

struct file_owner {
  uint32_t uid, gid, mode; /* each OWNER_KEEP: as it is */
  int64_t mtime_us;        /* TIME_KEEP: as it is */
};

/* JSON of a file as clients read it, appended. dir: where `path`, absolute in the volume, ends; for links. */
void file_put_stat(struct jw *w, int dir, struct str path, const struct stat *st);

int file_stat(int root, struct str path, struct buf *json, struct err *err);
int file_change(int root, struct str path, const struct file_owner *o, struct buf *json, struct err *err);
/* again: the same was asked before and nobody heard what came of it; that it is done already is success. -EAGAIN: the
 * time (clock_mono_us) has come before all of a tree was gone; each call removes something. */
int file_remove(int root, struct str path, bool again, int64_t until_us, struct err *err);
int file_mkdir(int root, struct str path, const struct file_owner *o, bool force, bool again, struct buf *json,
               struct err *err);
int file_link(int root, struct str path, const char *target, const struct file_owner *o, struct err *err);
int file_open(int root, struct str path, uint64_t *size, struct err *err); /* a descriptor to read from */

/* An upload: a file without a name, to be written to; size UINT64_MAX: not known. -EOPNOTSUPP never: where the
 * filesystem has no such files it is one of a hidden directory, `name` there. */
int file_upload(int root, struct str path, const char *name, uint64_t size, bool force, struct err *err);
/* It appears under its path; fd stays the caller's. */
int file_commit(int root, struct str path, const char *name, int fd, const struct file_owner *o, bool force,
                struct buf *json, struct err *err);
/* Before and after file_commit, for one that a power cut can't take: the bytes are on the disk, then the name is. */
int file_sync(int fd, struct str path, struct err *err);
int file_sync_name(int root, struct str path, struct err *err);
void file_discard(int root, const char *name); /* what file_upload made in the hidden directory, if it did */
/* Uploads in the hidden directory that nothing was written to for so long: their process died. */
void file_sweep(int root, int64_t idle_s);
/* Whether the file there is what an upload of so many bytes with this owner would have left. */
bool file_is(int root, struct str path, const struct file_owner *o, uint64_t size, struct buf *json);
/* Before the root of this process changes: what naming an upload needs on kernels before 6.10. */
int file_ops_open(struct err *err);

/* file_listing.c: entries below a directory, as a JSON array in sealed memory. -E2BIG: more than that; -EBUSY: it takes
 * too long. */
struct list_limits {
  uint64_t entries;
  unsigned seconds, mb;
};
int file_list(int root, struct str path, uint64_t depth, const struct list_limits *limits, uint64_t *size,
              struct err *err);

/* tree_remove.c: a name in a directory, with all below it. -EBUSY: others add to it as fast as it is emptied; -EAGAIN:
 * the time has come. What went is gone. */
int tree_remove(int parent, const char *name, int64_t until_us);

/* Where files are that can't be without a name, and replacements for the moment before they take another file's name.
 * Listings leave it out. */
#define UPLOADS_DIR ".cloche-uploads"

/* For both: the directory above the path, and the last name; the path is not "/". */
struct file_place {
  int dir;
  char name[256];
};
int file_place_open(int root, struct str path, struct file_place *out, struct err *err);
int file_open_in(int root, struct str path, int flags); /* openat2 inside, asked again when renames disturb it */

#endif
