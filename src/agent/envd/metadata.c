/* SPDX-License-Identifier: Apache-2.0 */
/* metadata.c - see metadata.h. */
#include "agent/envd/metadata.h"
#include <limits.h>
#include <stdio.h>
#include <sys/xattr.h>

#define KEY_MAX  246 /* 255 less the prefix */
#define SUM_MAX  4096
#define LIST_MAX (64 << 10)
#define PREFIX   STR(METADATA_PREFIX)

/* ---- reading ---- */

static void pair_read(const char *path, const char *name, struct arena *a, struct rpc_list *out)
{
  char value[XATTR_SIZE_MAX > 65536 ? 65536 : XATTR_SIZE_MAX];
  ssize_t n = getxattr(path, name, value, sizeof(value));
  struct rpc_pair pair = {str_skip(str_of(name), PREFIX.n), str_make(value, n > 0 ? (size_t)n : 0)};
  if (n < 0 || !utf8_valid(pair.key) || !utf8_valid(pair.value))
    return;
  pair.key = arena_str(a, pair.key);
  pair.value = arena_str(a, pair.value);
  if (pair.key.p && pair.value.p)
    rpc_list_add(a, out, sizeof(pair), &pair);
}

void metadata_read(const char *path, struct arena *a, struct rpc_list *out)
{
  char small[512];
  cleanup_free char *large = NULL;
  char *names = small;
  ssize_t n = listxattr(path, small, sizeof(small));
  if (n < 0 && errno == ERANGE) {
    names = large = malloc(LIST_MAX);
    n = large ? listxattr(path, large, LIST_MAX) : -1;
  }
  for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1)
    if (str_starts(str_of(names + at), PREFIX))
      pair_read(path, names + at, a, out);
}

/* ---- from headers ---- */

static bool printable(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if (s.p[i] < 0x20 || s.p[i] > 0x7e)
      return false;
  return true;
}

static struct str lower(struct arena *a, struct str s)
{
  char *text = arena_z(a, s);
  for (size_t i = 0; text && i < s.n; i++)
    if (text[i] >= 'A' && text[i] <= 'Z')
      text[i] = (char)(text[i] + 32);
  return str_make(text, s.n);
}

static bool known(const struct rpc_list *list, struct str key)
{
  for (size_t i = 0; i < list->n; i++)
    if (str_eq(((struct rpc_pair *)list->p)[i].key, key))
      return true;
  return false;
}

static int pair_check(const struct rpc_pair *pair, size_t *sum, struct err *err)
{
  if (pair->key.n > KEY_MAX)
    return err_set(err, -EINVAL, "invalid metadata: key is longer than %d bytes", KEY_MAX);
  if (!printable(pair->key) || !printable(pair->value))
    return err_set(err, -EINVAL,
                   "invalid metadata: key '" STR_FMT "' or its value has a byte that is not printable ASCII",
                   STR_ARG(pair->key));
  *sum += PREFIX.n + pair->key.n + pair->value.n;
  if (*sum > SUM_MAX)
    return err_set(err, -EINVAL, "invalid metadata: all together is more than %d bytes", SUM_MAX);
  return 0;
}

int metadata_parse(const struct http_head *head, struct arena *a, struct rpc_list *out, struct err *err)
{
  const struct str prefix = STR("X-Metadata-");
  size_t sum = 0;
  for (size_t i = 0; i < head->nheaders; i++) {
    const struct http_header *h = &head->headers[i];
    if (!str_istarts(h->name, prefix) || h->name.n == prefix.n)
      continue;
    struct rpc_pair pair = {lower(a, str_skip(h->name, prefix.n)), h->value};
    if (!pair.key.p || known(out, pair.key))
      continue;
    int rc = pair_check(&pair, &sum, err);
    if (rc < 0)
      return rc;
    if (rpc_list_add(a, out, sizeof(pair), &pair) < 0)
      return err_set(err, -EINVAL, "invalid metadata: too many keys");
  }
  return 0;
}

/* ---- writing ---- */

static int attr_name(struct str key, char out[XATTR_NAME_MAX + 1])
{
  int n = snprintf(out, XATTR_NAME_MAX + 1, METADATA_PREFIX STR_FMT, STR_ARG(key));
  return n < 0 || n > XATTR_NAME_MAX ? -EINVAL : 0;
}

static bool unsupported(int code)
{
  return code == EOPNOTSUPP || code == EPERM || code == ENOSYS || code == EACCES;
}

static int stale_remove(int fd, const struct rpc_list *pairs)
{
  cleanup_free char *names = malloc(LIST_MAX);
  ssize_t n = names ? flistxattr(fd, names, LIST_MAX) : 0;
  for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
    struct str name = str_of(names + at);
    if (!str_starts(name, PREFIX) || known(pairs, str_skip(name, PREFIX.n)))
      continue;
    if (fremovexattr(fd, names + at) < 0 && errno != ENODATA && !unsupported(errno))
      return -errno;
  }
  return 0;
}

int metadata_write(int fd, const struct rpc_list *pairs)
{
  if (pairs->n == 0 && flistxattr(fd, NULL, 0) <= 0)
    return 0;
  int rc = stale_remove(fd, pairs);
  for (size_t i = 0; rc == 0 && i < pairs->n; i++) {
    const struct rpc_pair *pair = &((struct rpc_pair *)pairs->p)[i];
    char name[XATTR_NAME_MAX + 1];
    rc = attr_name(pair->key, name);
    if (rc == 0 && fsetxattr(fd, name, pair->value.p ? pair->value.p : "", pair->value.n, 0) < 0)
      rc = unsupported(errno) ? 0 : -errno;
  }
  return rc;
}
