/* SPDX-License-Identifier: Apache-2.0 */
/* copy_step.c - see copy_step.h.
 *
 * Names come from an archive that a client made: none may climb, and none may pass through a link that the same archive
 * brought. Links that were there before are the template's own and are followed, so a directory that is a link stays
 * one. */
#include "agent/build/copy_step.h"
#include "agent/envd/inflate.h"
#include "agent/envd/resolve.h"
#include "unpack/tar_read.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

struct copy_step {
  struct buf prefix, dest, path; /* path: of the entry at hand */
  bool into;                     /* dest is a directory even for a single file */
  struct user owner;             /* uid and gid count */
  bool has_mode;
  unsigned mode;
  struct map links; /* paths this archive made into links */
  size_t placed;
  int fd; /* of the file being written */
  int64_t mtime;
  struct inflate *inflate;
  struct tar *tar;
  struct err *err;
};

/* ---- where a name goes ---- */

static bool wild(struct str part)
{
  for (size_t i = 0; i < part.n; i++)
    if (strchr("*?[]{}!()", part.p[i]) && part.p[i])
      return true;
  return false;
}

int copy_step_prefix(struct str source, struct buf *out)
{
  cleanup_buf struct buf clean = BUF_INIT(PATH_MAX);
  int r = path_clean(source, &clean);
  if (r)
    return r;
  struct str rest = buf_str(&clean), part;
  while (rest.n && rest.p[0] == '/')
    rest = str_skip(rest, 1);
  while (rest.n) {
    str_cut(rest, '/', &part, &rest);
    if (wild(part))
      break;
    if (str_is(part, "."))
      continue;
    if (out->n)
      buf_addc(out, '/');
    buf_adds(out, part);
  }
  return buf_failed(out);
}

/* 1 and p->path set, 0 when the name is not meant, or negative. */
static int target(struct copy_step *p, struct str name, enum tar_kind kind)
{
  cleanup_buf struct buf clean = BUF_INIT(PATH_MAX);
  struct str prefix = buf_str(&p->prefix), rest;
  if (!name.n || name.p[0] == '/' || path_clean(name, &clean))
    return err_set(p->err, -EPERM, "'" STR_FMT "' in the archive is not a relative path",
                   STR_ARG(str_sub(name, 0, 200)));
  struct str n = buf_str(&clean);
  if (str_is(n, "..") || str_starts(n, STR("../")))
    return err_set(p->err, -EPERM, "'" STR_FMT "' in the archive leads out of it", STR_ARG(str_sub(name, 0, 200)));
  if (str_is(n, "."))
    n = STR("");
  if (prefix.n && !str_eq(n, prefix) && !(str_starts(n, prefix) && n.p[prefix.n] == '/'))
    return 0;
  rest = str_skip(n, prefix.n);
  rest = rest.n && rest.p[0] == '/' ? str_skip(rest, 1) : rest;
  buf_clear(&p->path);
  buf_adds(&p->path, buf_str(&p->dest));
  bool single = !rest.n && kind != TAR_DIR; /* the source is this very file */
  struct stat st;
  if (single && (p->into || (stat(buf_z(&p->dest), &st) == 0 && S_ISDIR(st.st_mode))))
    rest = path_base(n);
  if (rest.n) {
    if (p->path.n > 1)
      buf_addc(&p->path, '/');
    buf_adds(&p->path, rest);
  }
  return buf_failed(&p->path) || p->path.n >= PATH_MAX
             ? err_set(p->err, -ENAMETOOLONG, "too long a name: " STR_FMT, STR_ARG(str_sub(name, 0, 200)))
             : 1;
}

/* ---- making it ---- */

static int fail(struct copy_step *p, const char *what)
{
  int code = -errno;
  return err_set(p->err, code, "%s %.300s: %s", what, buf_z(&p->path), strerror(-code));
}

static int parents(struct copy_step *p)
{
  for (size_t i = 1; i < p->path.n; i++)
    if (p->path.p[i] == '/' && map_get(&p->links, str_make(p->path.p, i)))
      return err_set(p->err, -EPERM, "'%.300s' is below a symbolic link of the same archive", buf_z(&p->path));
  int r = resolve_parents(buf_z(&p->path), &p->owner);
  return r ? err_set(p->err, r, "making the directory of %.300s: %s", buf_z(&p->path), strerror(-r)) : 0;
}

static int make_room(struct copy_step *p)
{
  if (unlink(buf_z(&p->path)) == 0 || errno == ENOENT)
    return 0;
  return fail(p, "replacing");
}

static int give(struct copy_step *p, unsigned mode)
{
  const char *path = buf_z(&p->path);
  p->placed++;
  if (lchown(path, p->owner.uid, p->owner.gid) || chmod(path, p->has_mode ? p->mode : mode))
    return fail(p, "giving away");
  return 0;
}

static int put_dir(struct copy_step *p, const struct tar_entry *e)
{
  struct stat st;
  const char *path = buf_z(&p->path);
  if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
    p->placed++;
    return p->has_mode ? give(p, e->mode) : 0;
  }
  if (make_room(p))
    return p->err->code;
  if (mkdir(path, 0755))
    return fail(p, "making");
  return give(p, e->mode);
}

static int put_link(struct copy_step *p, const struct tar_entry *e)
{
  int r = make_room(p);
  if (r)
    return r;
  char to[PATH_MAX];
  if (str_copyz(e->link, to, sizeof(to)))
    return err_set(p->err, -ENAMETOOLONG, "%.300s: the link's target is too long", buf_z(&p->path));
  if (symlink(to, buf_z(&p->path)))
    return fail(p, "linking");
  map_put(&p->links, buf_str(&p->path), p);
  p->placed++;
  return lchown(buf_z(&p->path), p->owner.uid, p->owner.gid) ? fail(p, "giving away") : 0;
}

static int put_hard(struct copy_step *p, const struct tar_entry *e)
{
  cleanup_buf struct buf here = BUF_INIT(PATH_MAX);
  buf_adds(&here, buf_str(&p->path));
  int r = target(p, e->link, TAR_FILE);
  if (r <= 0)
    return r ? r
             : err_set(p->err, -ENOENT, "%.300s is linked to '" STR_FMT "', which is not copied", buf_z(&here),
                       STR_ARG(str_sub(e->link, 0, 200)));
  cleanup_buf struct buf there = BUF_INIT(PATH_MAX);
  buf_adds(&there, buf_str(&p->path));
  buf_clear(&p->path);
  buf_adds(&p->path, buf_str(&here));
  r = make_room(p);
  if (r)
    return r;
  p->placed++;
  return link(buf_z(&there), buf_z(&p->path)) ? fail(p, "linking") : 0;
}

static int put_file(struct copy_step *p, const struct tar_entry *e)
{
  int r = make_room(p);
  if (r)
    return r;
  p->fd = open(buf_z(&p->path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  p->mtime = e->mtime;
  return p->fd < 0 ? fail(p, "making") : give(p, e->mode);
}

static int on_entry(void *arg, const struct tar_entry *e)
{
  struct copy_step *p = arg;
  int r = target(p, e->name, e->kind);
  if (r <= 0)
    return r;
  if (str_is(buf_str(&p->path), "/"))
    return 0;
  if ((r = parents(p)))
    return r;
  switch (e->kind) {
  case TAR_DIR:
    return put_dir(p, e);
  case TAR_SYMLINK:
    return put_link(p, e);
  case TAR_HARDLINK:
    return put_hard(p, e);
  case TAR_FILE:
    return put_file(p, e);
  default:
    return err_set(p->err, -EPERM, "%.300s is a device or a pipe, which has no place in a template", buf_z(&p->path));
  }
}

static int on_bytes(void *arg, struct str chunk)
{
  struct copy_step *p = arg;
  int r = p->fd < 0 ? 0 : fd_write_all(p->fd, chunk.p, chunk.n);
  return r ? err_set(p->err, r, "writing %.300s: %s", buf_z(&p->path), strerror(-r)) : 0;
}

static int on_over(void *arg)
{
  struct copy_step *p = arg;
  const struct timespec times[2] = {{.tv_sec = p->mtime}, {.tv_sec = p->mtime}};
  if (p->fd < 0)
    return 0;
  int r = futimens(p->fd, times) ? fail(p, "finishing") : 0;
  close(steal_fd(&p->fd));
  return r;
}

/* ---- who owns it ---- */

static int group_id(struct userdb *db, struct str name, gid_t *out)
{
  uint64_t n;
  if (!str_u64(name, &n) && n < UINT32_MAX)
    return *out = (gid_t)n, 0;
  struct str rest = buf_str(&db->group), line, head, tail, id;
  while (rest.n) {
    str_cut(rest, '\n', &line, &rest);
    str_cut(line, ':', &head, &tail);
    str_cut(tail, ':', &id, &tail);
    str_cut(tail, ':', &id, &tail);
    if (str_eq(head, name) && !str_u64(id, &n))
      return *out = (gid_t)n, 0;
  }
  return -ENOENT;
}

static int owner_read(struct copy_step *p, struct str text)
{
  cleanup_userdb struct userdb db = {0};
  struct str name, group;
  uint64_t id;
  userdb_load(&db);
  bool grouped = str_cut(text, ':', &name, &group);
  if (!str_u64(name, &id) && id < UINT32_MAX)
    p->owner = (struct user){.uid = (uid_t)id, .gid = (gid_t)id};
  else if (userdb_user(&db, name, &p->owner))
    return err_set(p->err, -ENOENT, "no user '" STR_FMT "'", STR_ARG(name));
  int r = group_id(&db, grouped && group.n ? group : name, &p->owner.gid);
  return r && grouped ? err_set(p->err, r, "no group '" STR_FMT "'", STR_ARG(group)) : 0;
}

static int mode_read(struct copy_step *p, struct str text)
{
  p->has_mode = text.n > 0;
  for (size_t i = 0; i < text.n; i++) {
    if (text.p[i] < '0' || text.p[i] > '7' || text.n > 5)
      return err_set(p->err, -EINVAL, "the mode '" STR_FMT "' is not octal like 0644", STR_ARG(text));
    p->mode = p->mode << 3 | (unsigned)(text.p[i] - '0');
  }
  p->mode &= 07777;
  return 0;
}

/* ---- the stream ---- */

static int unpacked(void *arg, struct str out)
{
  struct copy_step *p = arg;
  return tar_feed(p->tar, out, p->err);
}

static int feed(struct copy_step *p, struct str in, bool first)
{
  if (first && in.n > 1 && (unsigned char)in.p[0] == 0x1f && (unsigned char)in.p[1] == 0x8b)
    p->inflate = inflate_new();
  if (!p->inflate)
    return tar_feed(p->tar, in, p->err);
  int r = inflate_feed(p->inflate, in, unpacked, p);
  return r && !p->err->code ? err_set(p->err, r, "the archive's compression is broken") : r;
}

static int read_all(struct copy_step *p)
{
  static char bytes[256 << 10];
  bool first = true;
  for (;;) {
    ssize_t n = read(0, bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return err_errno(p->err, "reading the archive");
    if (n == 0)
      break;
    int r = feed(p, str_make(bytes, (size_t)n), first);
    if (r)
      return r;
    first = false;
  }
  if (p->inflate && !inflate_whole(p->inflate))
    return err_set(p->err, -EBADMSG, "the archive is cut short");
  return tar_finish(p->tar, p->err);
}

static int copy_step_run(struct copy_step *p, char **args)
{
  static const struct tar_ops ops = {on_entry, on_bytes, on_over};
  struct str dest = str_of(args[1]), owner = str_of(args[2]);
  char cwd[PATH_MAX];
  p->into = str_ends(dest, STR("/")) || str_is(dest, ".") || str_ends(dest, STR("/."));
  if (!getcwd(cwd, sizeof(cwd)))
    return err_errno(p->err, "the working directory");
  int r = copy_step_prefix(str_of(args[0]), &p->prefix);
  r = r ? r : dest.n && dest.p[0] == '/' ? path_clean(dest, &p->dest) : path_join(str_of(cwd), dest, &p->dest);
  if (r)
    return err_set(p->err, r, "too long a path");
  r = owner_read(p, owner.n ? owner : str_of(args[4]));
  r = r ? r : mode_read(p, str_of(args[3]));
  p->tar = tar_new(&ops, p);
  r = r ? r : read_all(p);
  if (!r && !p->placed)
    r = err_set(p->err, -ENOENT, "the archive holds nothing of '%s'", args[0]);
  return r;
}

int copy_step_main(char **args)
{
  struct err err = ERR_NONE;
  struct copy_step p = {
      .err = &err, .fd = -1, .prefix = BUF_INIT(PATH_MAX), .dest = BUF_INIT(PATH_MAX), .path = BUF_INIT(2 * PATH_MAX)};
  umask(022);
  int r = copy_step_run(&p, args);
  if (r)
    fprintf(stderr, "%s\n", err.msg);
  inflate_free(p.inflate);
  tar_free(p.tar);
  map_free(&p.links);
  buf_free(&p.prefix);
  buf_free(&p.dest);
  buf_free(&p.path);
  return r ? 1 : 0;
}
