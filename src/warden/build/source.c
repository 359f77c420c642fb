/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - see source.h. */
#include "warden/build/source.h"

#include "warden/build/fetch_user.h"
#include "warden/build/layer_lease.h"
#include "warden/core/helper_proc.h"
#include "warden/build/registry_auth.h"
#include "warden/build/source_name.h"
#include "warden/build/source_unpack.h"
#include "wire/sizes.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define CONFIG_MAX         ((size_t)64 << 10)
#define DEPTH_MAX          6                   /* of directories that a fetch makes */
#define OVERLAY_LAYERS_MAX ((size_t)512 << 10) /* bytes of the list of an image's layers */

struct fetch {
  const struct source_spec *s;
  struct source_name name;
  char dir[DATA_PATH_SIZE]; /* the team's: blobs/, and one directory per fetch */
  char own[40];             /* this fetch's, in dir */
  int work;                 /* dir */
  int source;               /* the named file or layout, or -1 */
  char at[80];              /* where skopeo sees it */
  uint32_t uid;             /* who fetches; 0: nobody yet */
  bool has_secret;          /* credentials are in own/auth.json */
};

struct str source_alias(const struct source_rules *rules, struct str image)
{
  struct str rest = str_of(rules->aliases), word, from, to;
  image = str_trim(image);
  if (str_ends(image, STR(":latest")))
    image.n -= strlen(":latest");
  while (rest.n) {
    str_cut(rest, ' ', &word, &rest);
    if (str_cut(word, '=', &from, &to) && str_eq(from, image))
      return to;
  }
  return STR_NONE;
}

/* ---- credentials ---- */

static int write_secret(struct fetch *f, struct err *err)
{
  cleanup_buf struct buf code = BUF_INIT(2 * REGISTRY_AUTH_MAX), text = BUF_INIT(4 * REGISTRY_AUTH_MAX);
  char path[80];
  int r = registry_auth_read(f->s, f->work, f->uid, &code, err);
  if (r)
    return r;
  struct jw w = JW(&text);
  jw_open(&w, '{');
  jw_key(&w, "auths");
  jw_open(&w, '{');
  jw_key(&w, f->name.host);
  jw_open(&w, '{');
  jw_key(&w, "auth");
  jw_str(&w, buf_str(&code));
  jw_close(&w, '}');
  jw_close(&w, '}');
  jw_close(&w, '}');
  snprintf(path, sizeof(path), "%s/auth.json", f->own);
  cleanup_fd int fd = openat(f->work, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0 || buf_failed(&text) || fd_write_all(fd, text.p, text.n) || fchown(fd, f->uid, f->uid))
    return err_errno(err, "keeping the registry's credentials for the fetch");
  f->has_secret = true;
  return 0;
}

/* ---- places ---- */

static uint64_t bytes_below(int dir)
{
  struct stat st;
  uint64_t sum = 0;
  DIR *d = fdopendir(dir);
  for (struct dirent *e; d && (e = readdir(d));)
    if (!fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
      sum += (uint64_t)st.st_blocks * 512;
  if (d)
    closedir(d);
  return sum;
}

/* Blobs are only a cache; over its size it starts anew. A fetch under way in there then asks again for what it misses.
 */
static int open_place(struct fetch *f, struct err *err)
{
  const struct source_rules *rules = f->s->rules;
  snprintf(f->dir, sizeof(f->dir), "%s/cache/images/%s", f->s->data, f->s->team);
  int r = path_mkdirs(f->dir, 0711);
  f->work = r ? -1 : open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (f->work < 0)
    return err_errno(err, "opening %s", f->dir);
  int blobs = openat(f->work, "blobs/sha256", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (blobs >= 0 && bytes_below(blobs) > (uint64_t)rules->cache_mb << 20)
    path_remove_tree(f->work, "blobs");
  snprintf(f->own, sizeof(f->own), "fetch-");
  random_id(f->own + 6, 16);
  r = fetch_user_take(rules, f->s->team, f->work, &f->uid, err);
  if (!r && (mkdirat(f->work, f->own, 0700) || fchownat(f->work, f->own, f->uid, f->uid, AT_SYMLINK_NOFOLLOW)))
    r = err_errno(err, "making %s for a fetch", f->own);
  return r;
}

static void close_place(struct fetch *f)
{
  fetch_user_release(f->s->rules, f->uid);
  if (f->work >= 0 && f->own[0])
    path_remove_tree(f->work, f->own);
  if (f->work >= 0)
    close(f->work);
  if (f->source >= 0)
    close(f->source);
}

/* Files are named below the operator's directory; links and dots that lead out of it fail in the kernel. */
static int open_source(struct fetch *f, struct err *err)
{
  const struct source_rules *rules = f->s->rules;
  const char *path = f->name.rest;
  if (!f->s->any_file && !rules->dir[0])
    return err_set(err, -EPERM, "images of the type '%s' are not enabled on this server (setting image_dir)",
                   f->name.transport);
  while (*path == '/')
    path++;
  cleanup_fd int top =
      f->s->any_file ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : open(rules->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  cleanup_fd int file = top < 0 ? -errno : path_open_beneath(top, path, O_PATH, 0);
  struct stat st;
  if (top < 0 || file < 0 || fstat(file, &st))
    return err_set(err, -ENOENT, "the image file '%s' is not in the server's directory of images", f->name.rest);
  bool layout = !strcmp(f->name.transport, "oci");
  if (layout != S_ISDIR(st.st_mode))
    return err_set(err, -EINVAL, "'%s' is %s; '%s:' expects %s", f->name.rest, layout ? "no directory" : "a directory",
                   f->name.transport, layout ? "an OCI layout" : "a file");
  f->source = steal_fd(&file);
  return 0;
}

/* ---- the fetch ---- */

static int check_host(const struct fetch *f, struct err *err)
{
  if (source_host_listed(f->s->rules->registries, f->name.host) ||
      source_host_listed(f->s->rules->insecure, f->name.host))
    return 0;
  return err_set(err, -EPERM, "images of the registry '%s' are not allowed on this server (setting image_registries)",
                 f->name.host);
}

static uint64_t tree_bytes(int at, const char *name, int depth)
{
  struct stat st;
  uint64_t sum = 0;
  int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  for (struct dirent *e; d && (e = readdir(d));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
      continue;
    sum += (uint64_t)st.st_blocks * 512;
    if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
      sum += tree_bytes(dirfd(d), e->d_name, depth + 1);
  }
  if (d)
    closedir(d);
  else if (fd >= 0)
    close(fd);
  return sum;
}

static size_t fetches_in(int work)
{
  size_t n = 0;
  int fd = openat(work, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  for (struct dirent *e; d && (e = readdir(d));)
    n += !strncmp(e->d_name, "fetch-", 6);
  if (d)
    closedir(d);
  return MAX(n, (size_t)1);
}

/* The limit of a file does not bound an image of many layers, nor a registry that never ends: what all fetches of the
 * team have on the disk is counted while they run, and the disk itself is looked at. */
static int within_limits(const void *of, struct err *err)
{
  const struct fetch *f = of;
  const struct source_rules *rules = f->s->rules;
  struct statvfs fs;
  uint64_t most = ((uint64_t)rules->cache_mb + (uint64_t)rules->size_mb * fetches_in(f->work)) << 20;
  if (tree_bytes(f->work, ".", 0) > most)
    return err_set(err, -EFBIG, "the image is larger than %u MiB, which is the most an image may have (image_size_mb)",
                   rules->size_mb);
  if (fstatvfs(f->work, &fs))
    return 0;
  uint64_t reserve = MIN((uint64_t)rules->reserve_mb << 20, (uint64_t)fs.f_blocks * fs.f_frsize / 20);
  if ((uint64_t)fs.f_bavail * fs.f_frsize < reserve)
    return err_set(err, -ENOSPC, "this server's disk is full: the image was not unpacked");
  return 0;
}

/* A layout is bound on a directory every machine has, an archive on a file of the fetch's own. */
static int prepare_source(struct fetch *f, struct err *err)
{
  if (!strcmp(f->name.transport, "oci")) {
    snprintf(f->at, sizeof(f->at), "/mnt");
    return 0;
  }
  char path[80];
  snprintf(path, sizeof(path), "%s/source", f->own);
  snprintf(f->at, sizeof(f->at), "/tmp/%s", path);
  cleanup_fd int fd = openat(f->work, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return fd < 0 ? err_errno(err, "making %s", path) : 0;
}

static int copy(struct fetch *f, struct err *err)
{
  char from[900], to[120], auth[120], temp[80];
  const char *argv[16];
  size_t n = 0;
  bool remote = !strcmp(f->name.transport, "docker");
  if (remote)
    snprintf(from, sizeof(from), "docker://%s/%s", f->name.host, f->name.rest);
  else
    snprintf(from, sizeof(from), "%s:%s%s%s", f->name.transport, f->at, f->name.tag[0] ? ":" : "", f->name.tag);
  snprintf(to, sizeof(to), "oci:/tmp/%s/layout:image", f->own);
  snprintf(auth, sizeof(auth), "--src-authfile=/tmp/%s/auth.json", f->own);
  argv[n++] = "skopeo";
  argv[n++] = "--insecure-policy"; /* whom to trust is said by image_registries */
  snprintf(temp, sizeof(temp), "--tmpdir=/tmp/%s", f->own);
  argv[n++] = temp;
  argv[n++] = "copy";
  argv[n++] = "--dest-shared-blob-dir=/tmp/blobs";
  if (remote && source_host_listed(f->s->rules->insecure, f->name.host))
    argv[n++] = "--src-tls-verify=false";
  argv[n++] = f->has_secret ? auth : "--src-no-creds";
  argv[n++] = from;
  argv[n++] = to;
  argv[n] = NULL;
  struct helper_proc c = {.argv = argv,
                          .uid = f->uid,
                          .work = f->work,
                          .source = f->source,
                          .source_at = f->at,
                          .file_max = (uint64_t)f->s->rules->size_mb << 20,
                          .seconds = source_seconds(f->s, f->s->rules->seconds),
                          .cancelled = f->s->cancelled,
                          .look = within_limits,
                          .of = f,
                          .say = f->s->say,
                          .arg = f->s->arg};
  return helper_proc_run(&c, err);
}

static int unpack(struct fetch *f, struct source_base *out, struct err *err)
{
  char path[120];
  snprintf(path, sizeof(path), "%s/layout/index.json", f->own);
  /* The fetch made all of it: a link that leads out of the team's place, or a pipe that waits, could be there. */
  cleanup_fd int index = path_open_beneath(f->work, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  cleanup_fd int blobs = openat(f->work, "blobs/sha256", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat st;
  if (index < 0 || blobs < 0 || fstat(index, &st) || !S_ISREG(st.st_mode))
    return err_set(err, -EBADMSG, "the fetched image has no index.json that is a plain file, or no blobs");
  struct source_input in = {.what = UNPACK_IMAGE, .index = index, .blobs = blobs};
  return source_unpack(f->s, &in, out, err);
}

static int fetch_image(struct fetch *f, struct source_base *out, struct err *err)
{
  bool remote = !strcmp(f->name.transport, "docker");
  int r = remote ? check_host(f, err) : open_source(f, err);
  r = r ? r : open_place(f, err);
  if (!r && remote && f->s->registry.n)
    r = write_secret(f, err);
  if (!r && !remote)
    r = prepare_source(f, err);
  r = r ? r : copy(f, err);
  return r ? r : unpack(f, out, err);
}

/* ---- Debian ---- */

static void say(const struct source_spec *s, enum log_level level, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void say(const struct source_spec *s, enum log_level level, const char *fmt, ...)
{
  char line[600];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof(line), fmt, ap);
  va_end(ap);
  if (s->say)
    s->say(s->arg, level, line);
}

/* A root made in the last debian_days serves again; its layer is named by release and day. */
static int known_debian(const struct fetch *f, struct source_base *out)
{
  int64_t today = clock_wall_us() / 1000000 / 86400;
  for (int64_t day = today; !f->s->force && day > today - (int64_t)f->s->rules->debian_days; day--) {
    char identity[80], layer[DATA_PATH_SIZE];
    snprintf(identity, sizeof(identity), "debian %s %lld", f->name.suite, (long long)day);
    source_key("", identity, out->key);
    snprintf(layer, sizeof(layer), "%s/layers/%s/fs", f->s->data, out->key);
    if (layer_lease_tree(layer))
      return buf_addf(&out->layers, "%s\n", layer),
             buf_addz(&out->config, "{\"env\":{},\"user\":\"\",\"workdir\":\"\",\"cmd\":[],\"entrypoint\":[]}");
  }
  out->key[0] = 0;
  return -ENOENT;
}

static int make_debian(struct fetch *f, struct source_base *out, struct err *err)
{
  char path[DATA_PATH_SIZE], identity[80], mark[20];
  snprintf(path, sizeof(path), "%s/cache", f->s->data);
  path_mkdirs(path, 0711);
  random_id(mark, 16);
  snprintf(path, sizeof(path), "%s/cache/debian-%s-%s.tar", f->s->data, f->name.suite, mark);
  const char *const argv[] = {f->s->rules->debian, f->name.suite, path, NULL};
  struct helper_proc c = {.argv = argv,
                          .work = -1,
                          .source = -1,
                          .file_max = (uint64_t)f->s->rules->size_mb << 20,
                          .seconds = source_seconds(f->s, f->s->rules->seconds),
                          .cancelled = f->s->cancelled,
                          .say = f->s->say,
                          .arg = f->s->arg};
  int r = helper_proc_run(&c, err);
  cleanup_fd int archive = r ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (!r && archive < 0)
    r = err_errno(err, "opening %s", path);
  unlink(path);
  if (r)
    return r;
  snprintf(identity, sizeof(identity), "debian %s %lld", f->name.suite, (long long)(clock_wall_us() / 1000000 / 86400));
  struct source_spec everyone = *f->s;
  everyone.team = "";
  struct source_input in = {.what = UNPACK_TAR, .index = archive, .blobs = -1, .identity = identity};
  return source_unpack(&everyone, &in, out, err);
}

/* Where the registry is not available, a Debian release can still be: from the archive this machine itself installs
 * from. */
static int debian_instead(struct fetch *f, struct source_base *out, struct err *err)
{
  if (!f->name.suite[0] || !f->s->rules->debian[0] || f->s->registry.n || err->code == -ECANCELED ||
      err->code == -EBADMSG || (f->s->deadline_us && clock_mono_us() > f->s->deadline_us))
    return err->code;
  say(f->s, LOG_WARN, "the image is not available (%s); building Debian %s from packages instead", err->msg,
      f->name.suite);
  if (!known_debian(f, out))
    return 0;
  struct err why = ERR_NONE;
  int r = make_debian(f, out, &why);
  return r ? err_set(err, r, "Debian %s could not be made: %s", f->name.suite, why.msg) : 0;
}

int source_fetch(const struct source_spec *spec, struct source_base *out, struct err *err)
{
  struct err own = ERR_NONE;
  struct fetch f = {.s = spec, .work = -1, .source = -1};
  err = err ? err : &own;
  *out = (struct source_base){.config = BUF_INIT(CONFIG_MAX), .layers = BUF_INIT(OVERLAY_LAYERS_MAX)};
  int r = source_name_read(spec->image, &f.name, err);
  if (!r && (r = fetch_image(&f, out, err)))
    r = debian_instead(&f, out, err);
  close_place(&f);
  return r;
}
