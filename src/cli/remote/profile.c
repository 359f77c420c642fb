/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/profile.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FILE_MAX     ((size_t)64 << 10)
#define NAME_MAX_LEN 64

char *profile_path(void)
{
  const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
  if (config && *config == '/')
    return xasprintf("%s/cloche/profiles", config);
  return home && *home == '/' ? xasprintf("%s/.config/cloche/profiles", home) : NULL;
}

bool profile_name_ok(const char *name)
{
  size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
  return n && n <= NAME_MAX_LEN && !name[n];
}

void profile_free(struct profile *p)
{
  if (p->key)
    explicit_bzero(p->key, strlen(p->key));
  free(p->url);
  free(p->key);
  *p = (struct profile){0};
}

static int read_file(const char *path, struct buf *text, struct err *err)
{
  struct stat st;
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return err_set(err, -errno, "%s: %s", path, strerror(errno));
  if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
    return err_set(err, -EPERM, "%s holds keys but others may read it, or it is not yours: chmod 600 it, or delete it",
                   path);
  int r = fd_read_all(fd, text);
  return r ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

static bool heading(struct str line, struct str *name)
{
  if (line.n < 2 || line.p[0] != '[' || line.p[line.n - 1] != ']')
    return false;
  *name = str_sub(line, 1, line.n - 2);
  return true;
}

static int take_line(struct str line, struct profile *out)
{
  struct str name, value;
  if (!str_cut(line, '=', &name, &value))
    return -EINVAL;
  name = str_trim(name);
  value = str_trim(value);
  char **to = str_is(name, "url") ? &out->url : str_is(name, "key") ? &out->key : NULL;
  if (!to || *to || !value.n)
    return -EINVAL;
  *to = xstrndup(value.p, value.n);
  return 0;
}

int profile_load(const char *path, const char *name, struct profile *out, struct err *err)
{
  cleanup_buf struct buf text = BUF_INIT(FILE_MAX);
  bool inside = false, found = false;
  int r = read_file(path, &text, err), number = 0;
  *out = (struct profile){0};
  if (r)
    return r;
  for (struct str rest = buf_str(&text), line, here; rest.n;) {
    if (!str_cut(rest, '\n', &line, &rest)) {
      line = rest;
      rest = STR_NONE;
    }
    line = str_trim(line);
    number++;
    if (!line.n || line.p[0] == '#')
      continue;
    if (heading(line, &here)) {
      inside = str_is(here, name);
      found |= inside;
    } else if (inside && take_line(line, out)) {
      r = err_set(err, -EINVAL, "%s:%d: expected 'url = ...' or 'key = ...', once each", path, number);
      break;
    }
  }
  if (!r && !found)
    r = err_set(err, -ENOENT, "%s has no profile '%s'; 'cloche login --profile %s' makes one", path, name, name);
  if (!r && (!out->url || !out->key))
    r = err_set(err, -EINVAL, "%s: profile '%s' needs both url and key", path, name);
  if (r)
    profile_free(out);
  return r;
}

/* All profiles but one. */
static void others(struct str rest, const char *name, struct buf *out)
{
  bool inside = false;
  for (struct str line, here; rest.n;) {
    if (!str_cut(rest, '\n', &line, &rest)) {
      line = rest;
      rest = STR_NONE;
    }
    if (heading(str_trim(line), &here))
      inside = str_is(here, name);
    if (!inside)
      buf_addf(out, STR_FMT "\n", STR_ARG(line));
  }
}

static int make_parents(const char *path, struct err *err)
{
  cleanup_free char *copy = xstrdup(path);
  for (char *p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
    *p = 0;
    if (mkdir(copy, 0700) && errno != EEXIST)
      return err_set(err, -errno, "%s: %s", copy, strerror(errno));
    *p = '/';
  }
  return 0;
}

int profile_store(const char *path, const char *name, const char *url, const char *key, struct err *err)
{
  cleanup_buf struct buf old = BUF_INIT(FILE_MAX), text = BUF_INIT(FILE_MAX);
  int r = read_file(path, &old, err);
  if (r && r != -ENOENT)
    return r;
  if (strpbrk(url, "\r\n") || strpbrk(key, "\r\n") || !*url || !*key)
    return err_set(err, -EINVAL, "an address and a key are one line each");
  others(buf_str(&old), name, &text);
  buf_addf(&text, "[%s]\nurl = %s\nkey = %s\n", name, url, key);
  if (buf_failed(&text))
    return err_set(err, -ENOSPC, "%s would be longer than %zu bytes", path, FILE_MAX);
  if ((r = make_parents(path, err)))
    return r;
  r = file_write_atomic(path, text.p, text.n, 0600);
  return r ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}
