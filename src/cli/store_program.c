/* SPDX-License-Identifier: Apache-2.0 */
/* store_program.c - see store_program.h. */
#include "cli/store_program.h"

#include "cli/config.h"
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>

#define URL_MAX 4096

/* Installed: <prefix>/lib/cloche; in a build tree: where it was built. */
static const char *const places[] = {"../lib/cloche/cloche-store", "../store/cloche-store"};

int store_program(char *out, size_t size, struct err *err)
{
  char self[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
  self[MAX(n, (ssize_t)0)] = 0;
  char *slash = strrchr(self, '/');
  if (slash)
    *slash = 0;
  for (size_t i = 0; i < ARRAY_LEN(places); i++)
    if ((size_t)snprintf(out, size, "%s/%s", self, places[i]) < size && !access(out, X_OK))
      return 0;
  return err_set(err, -ENOENT, "the program cloche-store is not beside %s/cloche; install the package cloche-store",
                 self);
}

static int read_url(const struct config *c, struct buf *out, struct err *err)
{
  if (!c->store.file[0]) {
    buf_addz(out, c->store.url);
    return 0;
  }
  int r = file_read(c->store.file, out);
  struct str url = str_trim(buf_str(out));
  if (r)
    return err_set(err, r, "store_file %s: %s", c->store.file, strerrordesc_np(-r));
  if (!url.n || str_find(url, '\n') >= 0)
    return err_set(err, -EINVAL, "store_file %s must hold one line, the URL of PostgreSQL", c->store.file);
  return 0;
}

int store_description(const struct config *c, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(2 * URL_MAX), url = BUF_INIT(URL_MAX);
  int r = read_url(c, &url, err);
  if (r)
    return r;
  buf_addf(&b, "uid %u\nlevel %s\nurl ", c->store.uid, c->log_level);
  buf_adds(&b, str_trim(buf_str(&url)));
  int fd = memfd_create("cloche-store", MFD_CLOEXEC);
  r = fd < 0 ? -errno : fd_write_all(fd, b.p, b.n);
  explicit_bzero(b.p, b.n);
  explicit_bzero(url.p, url.n);
  if (r && fd >= 0)
    close(fd);
  return r ? err_set(err, r, "memory for the store's URL: %s", strerrordesc_np(-r)) : fd;
}
