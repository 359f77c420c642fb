/* SPDX-License-Identifier: Apache-2.0 */
/* volume_path.c - see volume_path.h. */
#include "wire/volume_path.h"

#include "wire/sizes.h"

/* Of a path without `.`, `..` and double slashes. */
static bool names_fit(struct str path)
{
  struct str name;
  path = str_skip(path, 1);
  while (path.n) {
    str_cut(path, '/', &name, &path);
    if (name.n > VOLUME_NAME_MAX)
      return false;
  }
  return true;
}

int volume_path_clean(struct str given, struct buf *out)
{
  cleanup_buf struct buf absolute = BUF_INIT(1 << 17);
  given = str_trim(given);
  if (!given.n || memchr(given.p, 0, given.n))
    return -EINVAL;
  buf_addc(&absolute, '/');
  buf_adds(&absolute, given);
  buf_clear(out);
  if (buf_failed(&absolute) || path_clean(buf_str(&absolute), out) || buf_failed(out) || out->n >= VOLUME_PATH_SIZE ||
      !names_fit(buf_str(out)))
    return -ENAMETOOLONG;
  return 0;
}

bool volume_path_valid(struct str path)
{
  struct str name, rest = str_skip(path, 1);
  if (!path.n || path.p[0] != '/' || path.n >= VOLUME_PATH_SIZE || memchr(path.p, 0, path.n))
    return false;
  if (path.n > 1 && path.p[path.n - 1] == '/')
    return false;
  while (rest.n) {
    str_cut(rest, '/', &name, &rest);
    if (!name.n || name.n > VOLUME_NAME_MAX || str_is(name, ".") || str_is(name, ".."))
      return false;
  }
  return true;
}

bool volume_upload_valid(struct str id)
{
  for (size_t i = 0; i < id.n; i++)
    if (!((id.p[i] >= 'a' && id.p[i] <= 'z') || (id.p[i] >= '0' && id.p[i] <= '9')))
      return false;
  return id.n == 20 && id.n < UPLOAD_ID_SIZE;
}
