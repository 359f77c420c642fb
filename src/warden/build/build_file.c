/* SPDX-License-Identifier: Apache-2.0 */
/* build_file.c - archives of COPY steps: a gate writes into a descriptor, the warden names the file when it is whole.
 * Per team, so that knowing a hash gives nobody another team's files. */
#include "warden/build/builder.h"
#include "warden/core/context.h"
#include "wire/sizes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static bool word(struct str s, size_t least, size_t most, const char *extra)
{
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr(extra, c))))
      return false;
  }
  return s.n >= least && s.n <= most;
}

static int file_path(struct warden *w, struct str team, struct str hash, char out[DATA_PATH_SIZE], struct err *err)
{
  if (!word(team, 1, 40, "-") || !word(hash, 64, 64, ""))
    return err_set(err, -EINVAL, "'" STR_FMT "' is not a hash of 64 hex digits", STR_ARG(str_sub(hash, 0, 100)));
  snprintf(out, DATA_PATH_SIZE, "%s/files/" STR_FMT "/" STR_FMT, warden_config(w)->data, STR_ARG(team), STR_ARG(hash));
  return 0;
}

static int temp_path(struct warden *w, struct str team, struct str hash, struct str id, char out[760], struct err *err)
{
  char path[DATA_PATH_SIZE];
  int r = file_path(w, team, hash, path, err);
  if (!r && !word(id, 8, 40, ""))
    r = err_set(err, -EINVAL, "invalid upload ID");
  if (!r)
    snprintf(out, 760, "%s.new-" STR_FMT, path, STR_ARG(id));
  return r;
}

bool builder_file(struct warden *w, struct str team, struct str hash)
{
  char path[DATA_PATH_SIZE];
  return !file_path(w, team, hash, path, NULL) && access(path, F_OK) == 0;
}

int64_t builder_file_size(struct warden *w, struct str team, struct str hash)
{
  char path[DATA_PATH_SIZE];
  struct stat st;
  return file_path(w, team, hash, path, NULL) || lstat(path, &st) ? -1 : (int64_t)st.st_size;
}

int builder_file_open(struct warden *w, struct str team, struct str hash, struct str id, struct err *err)
{
  char path[DATA_PATH_SIZE], dir[DATA_PATH_SIZE];
  int r = temp_path(w, team, hash, id, path, err);
  if (r)
    return r;
  snprintf(dir, sizeof(dir), "%s/files/" STR_FMT, warden_config(w)->data, STR_ARG(team));
  path_mkdirs(dir, 0700);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  return fd < 0 ? err_errno(err, "%s", path) : fd;
}

int builder_file_close(struct warden *w, struct str team, struct str hash, struct str id, int64_t size, struct err *err)
{
  char temp[DATA_PATH_SIZE], path[DATA_PATH_SIZE];
  struct stat st;
  int r = temp_path(w, team, hash, id, temp, err);
  r = r ? r : file_path(w, team, hash, path, err);
  if (r)
    return r;
  if (size < 0)
    return unlink(temp) && errno != ENOENT ? err_errno(err, "%s", temp) : 0;
  if (stat(temp, &st))
    return errno == ENOENT && access(path, F_OK) == 0 ? 0 : err_errno(err, "%s", temp); /* asked again: it is there */
  if (st.st_size != size) {
    unlink(temp);
    return err_set(err, -EINVAL, "the upload has %lld bytes where %lld were announced", (long long)st.st_size,
                   (long long)size);
  }
  return rename(temp, path) ? err_errno(err, "%s", path) : 0;
}
