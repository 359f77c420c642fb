/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.c - path rules of the contract, and the making of directories on a user's behalf. */
#include "agent/envd/resolve.h"
#include <limits.h>
#include <sys/stat.h>

static int under_home(struct str rest, const struct user *u, struct buf *out)
{
  return path_join(str_of(u->home), rest, out);
}

static int resolve_given(struct str path, const struct user *u, struct buf *out, struct err *err)
{
  if (path.p[0] == '~') {
    if (path.n > 1 && path.p[1] != '/')
      return err_set(err, -EINVAL, "cannot expand user-specific home dir: '" STR_FMT "'",
                     STR_ARG(str_sub(path, 0, 256)));
    return path.n > 2 ? under_home(str_skip(path, 2), u, out) : buf_addz(out, u->home);
  }
  if (path.p[0] == '/')
    return buf_adds(out, path);
  return under_home(path, u, out);
}

int resolve_path(struct str path, const struct user *u, const char *workdir, struct buf *out, struct err *err)
{
  if (path.n && memchr(path.p, 0, path.n))
    return err_set(err, -EINVAL, "path contains a NUL byte");
  if (path.n == 0)
    path = str_of(workdir && workdir[0] ? workdir : u->home);
  buf_clear(out);
  int rc = resolve_given(path, u, out, err);
  if (rc < 0)
    return err && err->code ? rc : err_set(err, -EINVAL, "path is too long");
  buf_z(out);
  return buf_failed(out) ? err_set(err, -EINVAL, "path is too long") : 0;
}

static int dir_ensure(const char *dir, const struct user *u)
{
  struct stat st;
  if (stat(dir, &st) == 0)
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
  if (errno != ENOENT)
    return -errno;
  if (mkdir(dir, 0755) == 0)
    return lchown(dir, u->uid, u->gid) < 0 ? -errno : 0;
  if (errno != EEXIST)
    return -errno;
  /* Somebody made it meanwhile, or a link that leads nowhere has its name. */
  if (stat(dir, &st) < 0)
    return -errno;
  return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int resolve_mkdirs(const char *dir, const struct user *u)
{
  char path[PATH_MAX];
  if (str_copyz(str_of(dir), path, sizeof(path)) < 0)
    return -ENAMETOOLONG;
  for (char *p = path + 1; *p; p++) {
    if (*p != '/' || p[-1] == '/')
      continue;
    *p = '\0';
    int rc = dir_ensure(path, u);
    if (rc < 0)
      return rc;
    *p = '/';
  }
  return dir_ensure(path, u);
}

int resolve_parents(const char *path, const struct user *u)
{
  struct str dir = path_dir(str_of(path));
  char text[PATH_MAX];
  struct stat st;
  if (str_copyz(dir, text, sizeof(text)) < 0)
    return -ENAMETOOLONG;
  if (stat(text, &st) == 0 && S_ISDIR(st.st_mode)) /* the usual case: nothing to do */
    return 0;
  return resolve_mkdirs(text, u);
}
