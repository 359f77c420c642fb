/* SPDX-License-Identifier: Apache-2.0 */
/* applets.c - see applets.h. */
#include "agent/build/applets.h"
#include "agent/build/copy_step.h"
#include "agent/envd/resolve.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool name_char(char c, bool first)
{
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (!first && c >= '0' && c <= '9');
}

/* Length of the reference at the beginning of s (which starts with '$'), 0 when it is none; its name in *name. */
static size_t reference(struct str s, struct str *name)
{
  bool braced = s.n > 1 && s.p[1] == '{';
  size_t from = braced ? 2 : 1, at = from;
  while (at < s.n && name_char(s.p[at], at == from))
    at++;
  *name = str_sub(s, from, at - from);
  if (!name->n || (braced && (at >= s.n || s.p[at] != '}')))
    return 0;
  return braced ? at + 1 : at;
}

int applet_expand(struct str text, const char *(*get)(const char *name), struct buf *out)
{
  while (text.n) {
    struct str name;
    size_t n = text.p[0] == '$' ? reference(text, &name) : 0;
    if (!n) {
      buf_addc(out, text.p[0]);
      text = str_skip(text, 1);
      continue;
    }
    char z[256];
    const char *value = str_copyz(name, z, sizeof(z)) ? NULL : get(z);
    if (value)
      buf_adds(out, str_of(value));
    text = str_skip(text, n);
  }
  return buf_failed(out);
}

static const char *from_environment(const char *name)
{
  return getenv(name);
}

/* expand VALUE...: each expanded, closed by a NUL. */
static int expand(int argc, char **argv)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  buf_adds(&out, STR(APPLET_VALUES));
  for (int i = 2; i < argc; i++) {
    if (applet_expand(str_of(argv[i]), from_environment, &out))
      break;
    buf_addc(&out, 0);
  }
  if (buf_failed(&out)) {
    fprintf(stderr, "the values exceed %d bytes when they are expanded\n", 1 << 20);
    return 1;
  }
  return fd_write_all(1, out.p, out.n) ? 1 : 0;
}

/* workdir PATH USER: what is missing of it is made and belongs to the user. */
static int workdir(char **argv)
{
  struct user u;
  int r = user_find(str_of(argv[3]), &u);
  if (r) {
    fprintf(stderr, "user '%s': %s\n", argv[3], r == -ENOENT ? "no such user" : strerror(-r));
    return 1;
  }
  r = resolve_mkdirs(argv[2], &u);
  if (r)
    fprintf(stderr, "%s: %s\n", argv[2], strerror(-r));
  return r ? 1 : 0;
}

/* ---- CA certificates ---- */

#define CERTS_LOCAL  "/usr/local/share/ca-certificates"
#define CERTS_DIR    "/etc/ssl/certs"
#define CERTS_BUNDLE CERTS_DIR "/ca-certificates.crt"
#define CERTS_DEPTH  8

/* Under which name update-ca-certificates links it: Debian's without a prefix, Alpine's with one. */
static bool cert_linked(const char *prefix, struct str name)
{
  char path[512];
  struct stat st;
  int n = snprintf(path, sizeof(path), CERTS_DIR "/%s", prefix);
  for (size_t i = 0; i < name.n && n < (int)sizeof(path) - 8; i++) {
    char c = name.p[i];
    path[n++] = c == ' ' || c == ',' ? '_' : c == '(' || c == ')' ? '=' : c;
  }
  snprintf(path + n, sizeof(path) - (size_t)n, ".pem");
  return lstat(path, &st) == 0;
}

static bool cert_trusted(int dir, const char *name, const struct stat *bundle)
{
  struct stat st;
  struct str stem = str_sub(str_of(name), 0, strlen(name) - 4);
  if (fstatat(dir, name, &st, 0))
    return true; /* it leads nowhere */
  return st.st_mtim.tv_sec <= bundle->st_mtim.tv_sec && (cert_linked("", stem) || cert_linked("ca-cert-", stem));
}

static bool certs_trusted(int at, const char *path, unsigned depth, const struct stat *bundle)
{
  int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  bool trusted = true;
  if (!dir)
    return true;
  for (struct dirent *e; trusted && (e = readdir(dir));) {
    if (e->d_name[0] == '.')
      continue;
    if (e->d_type == DT_DIR)
      trusted = depth == 0 || certs_trusted(dirfd(dir), e->d_name, depth - 1, bundle);
    else if (str_ends(str_of(e->d_name), STR(".crt")))
      trusted = cert_trusted(dirfd(dir), e->d_name, bundle);
  }
  closedir(dir);
  return trusted;
}

/* trust: has the image's own tool take in certificates that a step added, where it has one. */
static int trust(void)
{
  struct stat bundle = {0};
  char *const argv[] = {(char *)"update-ca-certificates", NULL};
  stat(CERTS_BUNDLE, &bundle);
  if (certs_trusted(AT_FDCWD, CERTS_LOCAL, CERTS_DEPTH, &bundle))
    return 0;
  execvp(argv[0], argv);
  if (errno != ENOENT)
    fprintf(stderr, "update-ca-certificates: %s\n", strerror(errno));
  return errno == ENOENT ? 0 : 1;
}

int applet_main(int argc, char **argv)
{
  if (!strcmp(argv[1], "trust"))
    return trust();
  if (!strcmp(argv[1], "expand"))
    return expand(argc, argv);
  if (!strcmp(argv[1], "workdir") && argc == 4)
    return workdir(argv);
  if (!strcmp(argv[1], "copy") && argc == 7)
    return copy_step_main(argv + 2);
  fprintf(stderr, "usage: agent expand VALUE... | workdir PATH USER | copy SOURCE DEST OWNER MODE USER | trust\n");
  return 2;
}
