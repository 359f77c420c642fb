/* SPDX-License-Identifier: Apache-2.0 */
/* entry.c - EntryInfo by lstat, and the ordered walk of ListDir. Runs on worker threads too: touches nothing but its
 * arguments. */
#include "agent/envd/entry.h"
#include "agent/envd/metadata.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

void entry_permissions(unsigned mode, char out[PERMISSIONS_TEXT])
{
  const struct {
    bool set;
    char letter;
  } kinds[] = {
      {S_ISDIR(mode), 'd'},  {S_ISLNK(mode), 'L'},  {S_ISBLK(mode) || S_ISCHR(mode), 'D'},
      {S_ISFIFO(mode), 'p'}, {S_ISSOCK(mode), 'S'}, {mode & S_ISUID, 'u'},
      {mode & S_ISGID, 'g'}, {S_ISCHR(mode), 'c'},  {mode & S_ISVTX, 't'},
  };
  size_t n = 0;
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
    if (kinds[i].set)
      out[n++] = kinds[i].letter;
  if (n == 0)
    out[n++] = '-';
  for (int bit = 8; bit >= 0; bit--)
    out[n++] = mode >> bit & 1 ? "xwr"[bit % 3] : '-';
  out[n] = '\0';
}

static uint32_t type_of(unsigned mode)
{
  return S_ISREG(mode) ? ENTRY_FILE : S_ISDIR(mode) ? ENTRY_DIRECTORY : ENTRY_UNSPECIFIED;
}

static struct str id_name(struct str name, uint32_t id, struct arena *a)
{
  if (name.p)
    return arena_str(a, name);
  return str_of(arena_fmt(a, "%u", id));
}

static void link_fill(const char *path, struct arena *a, struct msg_entry *out)
{
  char real[PATH_MAX];
  struct stat st;
  out->has_target = out->is_symlink = true;
  out->target = realpath(path, real) ? arena_str(a, str_of(real)) : out->path;
  bool whole = stat(path, &st) == 0;
  out->type = whole ? type_of(st.st_mode) : ENTRY_UNSPECIFIED;
  out->mode = whole ? st.st_mode & 0777 : 0;
}

int entry_fill(const char *path, struct userdb *db, struct arena *a, struct msg_entry *out)
{
  struct stat st;
  char permissions[PERMISSIONS_TEXT];
  if (lstat(path, &st) < 0)
    return -errno;
  *out = (struct msg_entry){0};
  out->path = arena_str(a, str_of(path));
  out->name = path_base(out->path);
  out->type = type_of(st.st_mode);
  out->size = st.st_size;
  out->mode = st.st_mode & 0777;
  entry_permissions(st.st_mode, permissions);
  out->permissions = arena_str(a, str_of(permissions));
  out->owner = id_name(userdb_user_name(db, st.st_uid), st.st_uid, a);
  out->group = id_name(userdb_group_name(db, st.st_gid), st.st_gid, a);
  out->modified = (struct rpc_time){st.st_mtim.tv_sec, (int32_t)st.st_mtim.tv_nsec};
  if (S_ISLNK(st.st_mode))
    link_fill(path, a, out);
  metadata_read(path, a, &out->metadata);
  return out->path.p && out->permissions.p && out->owner.p && out->group.p ? 0 : -ENOMEM;
}

/* ---- walking ---- */

struct names {
  char **p;
  size_t n, cap;
};

static void names_free(struct names *names)
{
  for (size_t i = 0; i < names->n; i++)
    free(names->p[i]);
  vec_free(names);
}

static int name_order(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_read(const char *path, struct names *names)
{
  DIR *dir = opendir(path);
  if (!dir)
    return -errno;
  for (struct dirent *e; (e = readdir(dir));)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
      vec_push(names, xstrdup(e->d_name));
  closedir(dir);
  if (names->n)
    qsort(names->p, names->n, sizeof(*names->p), name_order);
  return 0;
}

/* On the heap: the walk may be as deep as a path is long. */
static char *child_path(const char *dir, const char *name)
{
  size_t n = strlen(dir);
  while (n > 0 && dir[n - 1] == '/')
    n--;
  return xasprintf("%.*s/%s", (int)n, dir, name);
}

static int walk_one(const char *path, uint32_t depth, struct userdb *db, struct arena *a, struct rpc_list *out)
{
  struct msg_entry *e = arena_alloc(a, sizeof(*e));
  if (!e)
    return -ENOMEM;
  int rc = entry_fill(path, db, a, e);
  if (rc < 0)
    return rc == -ENOMEM ? rc : 0;
  if (rpc_list_add(a, out, sizeof(e), &e) < 0)
    return -ENOMEM;
  if (depth <= 1 || e->type != ENTRY_DIRECTORY || e->has_target)
    return 0;
  rc = entry_walk(path, depth - 1, db, a, out);
  return rc == -ENOENT || rc == -ENOTDIR ? 0 : rc;
}

int entry_walk(const char *path, uint32_t depth, struct userdb *db, struct arena *a, struct rpc_list *out)
{
  struct names names = {0};
  int rc = names_read(path, &names);
  for (size_t i = 0; rc == 0 && i < names.n; i++) {
    cleanup_free char *child = child_path(path, names.p[i]);
    if (strlen(child) < PATH_MAX)
      rc = walk_one(child, depth, db, a, out);
  }
  names_free(&names);
  return rc;
}
